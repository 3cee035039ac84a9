#!/usr/bin/env bash
# dashboards/check is content with the tree, and with no tree in which one thing is broken.
source "$(dirname "$0")/planted.sh"

"$repository/dashboards/check"

plant dashboards/grafana/rivulet-node.json 's/Back-pressure/Backpressure/'
must_fail "grafana/rivulet-node.json is not what src/ makes"
plant dashboards/src/fleet.ts "s/title: 'Back-pressure'/titel: 'Back-pressure'/"
must_fail "'titel' does not exist in type"
plant core/metrics.def '$aRIVULET_METRIC(gauge, planted_rows, "Rows.")'
must_fail "no panel, rule or alert shows rivulet_planted_rows"
plant core/metrics.def '/grad_norm/d'
must_fail 'asks for rivulet_grad_norm, which core/metrics.def does not have'
plant dashboards/prometheus/alerts.yaml 's/RivuletBadRows/RivuletWorseRows/'
must_fail "RivuletWorseRows has no tests"
plant dashboards/prometheus/alerts.yaml 's/^        expr: up{.*/&)/'
must_fail "RivuletDown does not parse"
plant dashboards/prometheus/alerts.yaml 's/ratio_rate5m > 0.01/ratio_rate5m > 0.5/'
must_fail "alertname: RivuletBadRows"
plant dashboards/prometheus/tests/RivuletDown.yaml 's/alertname: RivuletDown, exp_alerts: \[\]/alertname: RivuletUp, exp_alerts: []/'
must_fail "RivuletDown has no test in which it is silent"
plant dashboards/prometheus/tests/RivuletBackpressure.yaml '/# Slightly above/,$d'
must_fail 'the tests of RivuletBackpressure pass although 0.5 is 0.33'
must_fail 'the tests of RivuletBackpressure pass although it waits for 450s'
