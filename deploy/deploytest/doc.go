// Package deploytest tests what deploy/ has for Prometheus and Grafana: alerts, recording rules and dashboards; and the
// files of hosts without containers.
//
// rules_test.go and dashboards_test.go compare them with docs/metrics.md, which a test in cmd/quorate compares with a
// real server, and let promtool play the tests of the rules. watch_test.go starts three servers with certificates,
// keeps them busy with everything that a dashboard shows (load_test.go), lets a real Prometheus scrape them at
// metrics-addr, and runs every query. hosts_test.go plays the installation on three hosts, in network namespaces.
package deploytest
