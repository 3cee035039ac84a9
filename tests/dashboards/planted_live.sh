#!/usr/bin/env bash
# planted_live.sh URL: dashboards/check finds what is broken with that Prometheus, which is content with the tree.
source "$(dirname "$0")/planted.sh"

plant dashboards/grafana/rivulet-fleet.json 's/sum(rivulet_ready{/sum(rivulet_steady{/'
must_fail 'panel "Ready devices" has no answer' --prometheus "$1"
must_fail 'asks for rivulet_steady, which /metrics does not have' --prometheus "$1"
plant dashboards/grafana/rivulet-fleet.json 's/sum by (instance) (rate(rivulet_rows_dropped_total/sum by (device) (rate(rivulet_rows_dropped_total/'
must_fail 'names its lines by the label instance, which the answer lacks' --prometheus "$1"
plant dashboards/grafana/rivulet-fleet.json 's/label_values(rivulet_build_info, job)/label_values(rivulet_build_info, jobs)/'
must_fail 'variable job has no value' --prometheus "$1"
plant dashboards/grafana/rivulet-fleet.json 's/changes(rivulet_collective_view{/changes(rivulet_collective_views{/'
must_fail 'annotation "Views" has no answer' --prometheus "$1"
plant dashboards/grafana/rivulet-device.json 's/rivulet_temperature_celsius/rivulet_temperature_kelvin/'
must_fail 'panel "Temperatures" has no answer' --prometheus "$1" --full rivulet-device
plant dashboards/prometheus/alerts.yaml 's/{result="failed"}/{result="broken"}/'
must_fail 'RivuletCommitFailing has no answer' --prometheus "$1"
plant dashboards/prometheus/recording.yaml 's/instance:rivulet_backpressure:ratio_rate5m/instance:rivulet_backpressure:ratio_rate6m/'
must_fail 'instance:rivulet_backpressure:ratio_rate6m is not loaded' --prometheus "$1"
