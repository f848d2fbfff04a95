#!/bin/sh
# Tells Spark which GPUs this machine offers: {"name":"gpu","addresses":["0","1"]}.
#
# An address is the number that a process started from here has to use. Where CUDA_VISIBLE_DEVICES shows some GPUs only,
# CUDA numbers those from 0; like CUDA, this stops at the first entry that is no GPU.

set -euf

fail() {
    echo "gpu_discovery.sh: $1" >&2
    exit 1
}

command -v nvidia-smi >/dev/null 2>&1 || fail "no nvidia-smi on PATH: no NVIDIA driver is installed here"
listed=$(nvidia-smi -L 2>&1) || fail "nvidia-smi failed: $(printf '%s\n' "$listed" | head -n 1)"
gpus=$(printf '%s\n' "$listed" | sed -n 's/^GPU \([0-9][0-9]*\): .*(UUID: \(.*\))$/\1 \2/p')
[ -n "$gpus" ] || fail "the driver sees no GPU"

if [ -n "${CUDA_VISIBLE_DEVICES+set}" ]; then
    # Instances of a divided GPU have UUIDs only.
    uuids=$(printf '%s\n' "$listed" | sed -n 's/^.*(UUID: \(.*\))$/\1/p')
    count=0
    old_ifs=$IFS
    IFS=,
    for entry in $CUDA_VISIBLE_DEVICES; do
        entry=$(printf '%s' "$entry" | tr -d '[:space:]')
        case $entry in
            '' | *[!0-9A-Za-z-]*) break ;;
            GPU-* | MIG-*) printf '%s\n' "$uuids" | grep -q "^$entry" || break ;;
            *) printf '%s\n' "$gpus" | grep -q "^$entry " || break ;;
        esac
        count=$((count + 1))
    done
    IFS=$old_ifs
    [ "$count" -gt 0 ] || fail "CUDA_VISIBLE_DEVICES='$CUDA_VISIBLE_DEVICES' hides all GPUs"
else
    count=$(printf '%s\n' "$gpus" | wc -l)
fi

addresses=''
number=0
while [ "$number" -lt "$count" ]; do
    addresses="$addresses${addresses:+,}\"$number\""
    number=$((number + 1))
done
printf '{"name":"gpu","addresses":[%s]}\n' "$addresses"
