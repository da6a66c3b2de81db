package main

import (
	"fmt"
	"os"
	"slices"
)

// A comparison has the rates of two that ran alternately.
type comparison struct {
	Measured []float64 `json:"measured_per_second"`
	Beside   []float64 `json:"beside_per_second"` // of what it is compared with
	Ratio    float64   `json:"ratio"`             // of the medians
}

// compared measures both in each of so many runs, and begins with the other one in every
// second run.
func compared(what string, runs int, measured, beside func() (float64, error)) (c comparison, err error) {
	for run := range runs {
		turns := []struct {
			measure func() (float64, error)
			rates   *[]float64
		}{{measured, &c.Measured}, {beside, &c.Beside}}
		if run%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			rate, err := turn.measure()
			if err != nil {
				return c, fmt.Errorf("%s: %w", what, err)
			}
			*turn.rates = append(*turn.rates, rate)
		}
	}
	c.Ratio = median(c.Measured) / median(c.Beside)
	fmt.Fprintf(os.Stderr, "%s: %.2f\n", what, c.Ratio)
	return c, nil
}

// columns are the comparison's in a table, in millions.
func (c comparison) columns(format string) string {
	return fmt.Sprintf("%s | %s | %.2f", spread(c.Measured, format), spread(c.Beside, format), c.Ratio)
}

// spread is a median with the least and the most, in millions.
func spread(v []float64, format string) string {
	return fmt.Sprintf(format+" ("+format+", "+format+")", median(v)/1e6, slices.Min(v)/1e6, slices.Max(v)/1e6)
}
