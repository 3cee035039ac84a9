#!/bin/bash
read -ra heap <<<"${KAFKA_HEAP_OPTS-}"
exec java "${heap[@]}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j.configuration=file:/opt/kafka/log4j.properties \
  -cp '/opt/kafka/libs/*' org.apache.kafka.tools.TopicCommand "$@"
