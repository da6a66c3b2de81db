package server

import (
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// Routes is the route table.
func Routes() []*echo.Route {
	e := echo.New()
	(&Server{}).routes(e)
	return e.Routes()
}

// MetricRows are the rows that docs/metrics.md has to have.
func MetricRows() []string {
	kinds := map[prometheus.ValueType]string{prometheus.GaugeValue: "gauge", prometheus.CounterValue: "counter"}
	var rows []string
	for _, m := range newMetrics().all {
		labels := make([]string, len(m.labels))
		for i, l := range m.labels {
			labels[i] = "`" + l + "`"
		}
		rows = append(rows, "| `"+m.name+"` | "+kinds[m.kind]+" | "+strings.Join(labels, " ")+" | "+m.help+" |")
	}
	return rows
}

// Pace gives how long a follower of rows rests after each look.
func Pace() func(poll, took time.Duration, sent int) time.Duration { return new(pace).rest }
