"""CUDA twins. Importing this package first points Numba at the cache folder.

Rules of all kernels, which each docstring repeats in short:

- Grid: of any size, threads step by its width (`cuda.grid` and `cuda.gridsize` are 64 bits wide, as are all counts of
  pairs and places among them); the bound is checked before anything is read. Blocks have 128 threads, those of
  `count_clues_kernel` what its `Geometry` says.
- Races: none, not even harmless ones, by one of four rules. *own item*: a thread writes only to its own items. *one
  source*: each place has exactly one item that writes it (a permutation, or places from running sums). *atomic*:
  several threads add to one cell, or take its minimum. *launches*: an earlier launch wrote what this one reads.
- Shared memory: none but in `count_clues_kernel`. Registers are bounded in tests where they decide how many blocks fit
  on a multiprocessor (65,536 of them, 2,048 threads): up to 32 registers all threads fit, with 64 half of them.
- Bytes of an item: traffic with memory. g is a gather: 4 bytes, or a whole sector of 32 where neighbours don't share
  it. s is a binary search, of which only the last step leaves the caches. An H100 moves 3.35e12 bytes a second, an H200
  4.8e12; both do 1.7e13 operations on 32-bit integers a second.

=========================  ============================  ==========================  =======  ==========
kernel                     item of a thread              bytes of an item            bound    no race by
=========================  ============================  ==========================  =======  ==========
count_clues_kernel         a row of strips of pairs      0.3 a pair                  integer  atomic
number_clusters_kernel     a member                      4 + s                       memory   own item
gather_codes_kernel        a row                         8 + g                       memory   own item
scatter_clusters_kernel    a row                         8 + g                       memory   one source
reduce_extremes_kernel     codes, a grid's width apart   4 a code                    memory   atomic
begin_keys_kernel          a key                         12                          memory   own item
append_codes_kernel        a key                         20                          memory   own item
append_places_kernel       a key                         16                          memory   own item
split_keys_kernel          a key                         16                          memory   own item
regroup_keys_kernel        a key                         12 + g                      memory   own item
regroup_order_kernel       a key                         12 + g                      memory   own item
flag_changes_kernel        a member                      8 + 2 g                     memory   own item
start_runs_kernel          a place                       4, of a run 20              memory   one source
measure_runs_kernel        a run                         32 + s                      memory   own item
scatter_runs_kernel        a place                       16 + g                      memory   one source
scatter_offsets_kernel     a run                         24                          memory   one source
locate_slices_kernel       a left row                    40 + 2 s                    memory   own item
measure_slices_kernel      a left row                    40                          memory   own item
emit_slices_kernel         a pair                        12 + s                      memory   own item
unpack_keys_kernel         a key                         12                          memory   own item
flag_steps_kernel          a code                        8                           memory   own item
keep_flagged_kernel        a code                        8, of a value 20            memory   one source
rank_codes_kernel          a code                        8 + s                       memory   own item
flag_bits_kernel           a rank                        8                           memory   own item
scatter_bits_kernel        a rank                        20                          memory   one source
pack_bits_kernel           64 flags                      276                         memory   own item
rank_thresholds_kernel     a left row                    12 + s                      memory   own item
count_join_kernel          a left row                    32 + 4 g a level            memory   own item
fill_leaves_kernel         16 codes                      68                          memory   own item
fill_nodes_kernel          a node                        12                          memory   launches
shift_codes_kernel         a code                        12                          memory   own item
emit_join_kernel           a left row                    48 + g a node, 12 a pair    memory   own item
flag_partners_kernel       a left row                    36 + g a node               memory   own item
pick_extremes_kernel       a chosen left row             28 + g a node               memory   own item
reverse_clusters_kernel    a row                         12 + g                      memory   own item
invert_order_kernel        a place                       4 + g                       memory   one source
pair_keys_kernel           a key                         16 + g                      memory   own item
bound_leaves_kernel        a leaf of 16 rows             28 + 72 a column            memory   own item
bound_parents_kernel       a node                        28 + 24 a column            memory   launches
set_boxes_kernel           a left row and a column       20                          memory   own item
count_boxes_kernel         a left row                    20 + 2 g a node             memory   own item
emit_boxes_kernel          a left row                    20 + 2 g a node, 12 a pair  memory   own item
place_in_blocks_kernel     a row                         12                          memory   own item
fill_bitmaps_kernel        a word of a block's bitmaps   8 a bin                     integer  own item
count_bitmaps_kernel       a left row                    128 a block and comparison  integer  own item
emit_bitmaps_kernel        a left row                    128 a block and comparison  integer  own item
spread_members_kernel      a member of a job             20 + g                      memory   own item
drop_nulls_kernel          a run                         8 + 2 g                     memory   own item
locate_jobs_kernel         a job                         24 + 3 g                    memory   own item
find_firsts_kernel         16 members of jobs            8 + g a member              memory   atomic
find_different_kernel      16 members of jobs            12 + 3 g a member           memory   atomic
arrange_members_kernel     a member                      9 + 3 g                     memory   own item
summarize_strips_kernel    a strip of 64 places or more  5 + g a place               memory   own item
carry_strips_kernel        a job                         80 a strip                  latency  launches
find_swaps_kernel          a strip of 64 places or more  5 + 3 g a place             memory   atomic
intersect_clusters_kernel  an attribute, word and slice  16 a cluster                integer  atomic
count_common_kernel        two attributes and a slice    24 a cluster                integer  atomic
=========================  ============================  ==========================  =======  ==========
"""

from tuplewise.gpu_kernels import cache

cache.prepare()
