#!/bin/bash
# What a container of Dockerfile.cuda starts: tuplewise, or a pod's part in a job of Spark on Kubernetes.
#
#   image_entry.sh driver ARGUMENTS      spark-submit, as Spark asks of a driver's pod
#   image_entry.sh executor              an executor, described by variables that Spark sets
#   image_entry.sh ARGUMENTS             tuplewise ARGUMENTS
#
# Each is exec'd: it gets the container's signals, and its exit code is the container's.

set -euo pipefail

need() {
    local name
    for name in "$@"; do
        if [ -z "${!name:-}" ]; then
            echo "image_entry.sh: $role: $name is not set; Spark on Kubernetes sets it in the pods that it starts" >&2
            exit 2
        fi
    done
}

role=${1:-}
case $role in
    driver)
        need SPARK_HOME SPARK_DRIVER_BIND_ADDRESS
        shift
        exec "$SPARK_HOME/bin/spark-submit" \
            --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
            --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=$SPARK_DRIVER_BIND_ADDRESS" \
            --deploy-mode client "$@"
        ;;
    executor)
        need SPARK_HOME JAVA_HOME SPARK_DRIVER_URL SPARK_EXECUTOR_ID SPARK_EXECUTOR_CORES SPARK_EXECUTOR_MEMORY \
            SPARK_APPLICATION_ID SPARK_EXECUTOR_POD_IP SPARK_EXECUTOR_POD_NAME SPARK_RESOURCE_PROFILE_ID
        # Java's options come numbered from 0, one a variable, and may hold blanks.
        options=()
        number=0
        name=SPARK_JAVA_OPT_0
        while [ -n "${!name+set}" ]; do
            options+=("${!name}")
            number=$((number + 1))
            name=SPARK_JAVA_OPT_$number
        done
        # The job's settings first, then what it puts before Spark's classes, then these and the job's own files.
        classes=${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}${HADOOP_CONF_DIR:+$HADOOP_CONF_DIR:}
        classes="$classes${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$SPARK_HOME/jars/*:$PWD"
        exec "$JAVA_HOME/bin/java" "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
            -cp "$classes" org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
            --driver-url "$SPARK_DRIVER_URL" \
            --executor-id "$SPARK_EXECUTOR_ID" \
            --cores "$SPARK_EXECUTOR_CORES" \
            --app-id "$SPARK_APPLICATION_ID" \
            --hostname "$SPARK_EXECUTOR_POD_IP" \
            --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
            --podName "$SPARK_EXECUTOR_POD_NAME"
        ;;
    *)
        exec tuplewise "$@"
        ;;
esac
