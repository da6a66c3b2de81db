package main

import (
	"math/bits"
	"slices"
	"time"
)

// A histogram counts durations in buckets of a sixty-fourth of their size, so that
// percentiles are right within 1.6 %, from microseconds on.
type histogram []uint64

const histogramBits = 6

func (h *histogram) add(d time.Duration) {
	i := bucketOf(uint64(max(d.Microseconds(), 0)))
	if i >= len(*h) {
		*h = append(*h, make([]uint64, i+1-len(*h))...)
	}
	(*h)[i]++
}

func bucketOf(us uint64) int {
	if us < 1<<histogramBits {
		return int(us)
	}
	shift := bits.Len64(us) - 1 - histogramBits
	return shift<<histogramBits + int(us>>shift)
}

// lowOf is the least that bucket i counts.
func lowOf(i int) time.Duration {
	if i < 1<<histogramBits {
		return time.Duration(i) * time.Microsecond
	}
	shift := i>>histogramBits - 1
	return time.Duration(uint64(i-shift<<histogramBits)<<shift) * time.Microsecond
}

// minus takes an earlier state of the same histogram away.
func (h histogram) minus(before histogram) histogram {
	out := slices.Clone(h)
	for i, n := range before {
		out[i] -= n
	}
	return out
}

// plus adds another one.
func (h histogram) plus(other histogram) histogram {
	out := make(histogram, max(len(h), len(other)))
	copy(out, h)
	for i, n := range other {
		out[i] += n
	}
	return out
}

func (h histogram) count() (n uint64) {
	for _, k := range h {
		n += k
	}
	return n
}

// percentile is what the part p of the durations does not exceed.
func (h histogram) percentile(p float64) time.Duration {
	want, n := uint64(p*float64(h.count())), uint64(0)
	for i, k := range h {
		if n += k; n > want {
			return lowOf(i + 1)
		}
	}
	return lowOf(len(h))
}

// most is what none of the durations exceeds.
func (h histogram) most() time.Duration {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i] > 0 {
			return lowOf(i + 1)
		}
	}
	return 0
}

// quantile is the value at part p of a list; the largest at 1.
func quantile(v []float64, p float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[min(int(p*float64(len(s))), len(s)-1)]
}

// milliseconds turns a duration into what the tables show.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
