package main

import (
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	for us := uint64(0); us < 1<<22; us += 1 + us/100 {
		i := bucketOf(us)
		d := time.Duration(us) * time.Microsecond
		if low, next := lowOf(i), lowOf(i+1); d < low || d >= next || float64(next-low) > float64(d)/64+float64(time.Microsecond) {
			t.Fatalf("%v is in the bucket from %v to %v", d, low, next)
		}
	}
	var h histogram
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	before := h
	h = h.plus(before).minus(before)
	for p, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 0.999: 999 * time.Millisecond} {
		if got := h.percentile(p); got < want || got > want*103/100 {
			t.Errorf("percentile %v is %v, want about %v", p, got, want)
		}
	}
	if most := h.plus(histogram{1}).minus(histogram{1}).most(); most < time.Second || most > 1030*time.Millisecond {
		t.Errorf("the longest duration is %v, want about 1 s", most)
	}
	if h.count() != 1000 {
		t.Errorf("%d durations counted", h.count())
	}
}
