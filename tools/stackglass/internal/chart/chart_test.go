package chart

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"io"
	"math"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

func histogramOf(counts map[uint64]uint64) *profile.Histogram {
	h := new(profile.Histogram)
	for d, n := range counts {
		h.AddN(d, n)
	}
	return h
}

// TestChartsOfAnyProfile checks that the charts of arbitrary profiles, including profiles with the
// smallest and largest numbers, are images that can be decoded.
func TestChartsOfAnyProfile(t *testing.T) {
	for name, c := range map[string]struct {
		counts map[uint64]uint64
		cold   uint64
	}{
		"no access":      {nil, 0},
		"one access":     {nil, 1},
		"one line":       {map[uint64]uint64{0: 1 << 40}, 1},
		"three decades":  {map[uint64]uint64{0: 1e6, 1000: 1e3, 1e6: 10}, 10},
		"never a hit":    {map[uint64]uint64{}, 1e9},
		"a far distance": {map[uint64]uint64{1 << 24: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := histogramOf(c.counts)
			curve, err := Curve(name, 64, profile.NewCurve(h, c.cold))
			if err != nil {
				t.Fatal(err)
			}
			bars, err := Histogram(name, 64, h, c.cold)
			if err != nil {
				t.Fatal(err)
			}
			for _, drawn := range []*Chart{curve, bars} {
				readBack(t, drawn)
			}
		})
	}
}

func readBack(t *testing.T, c *Chart) {
	t.Helper()
	var picture bytes.Buffer
	if err := c.Write(&picture, PNG); err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(&picture); err != nil {
		t.Error(err)
	}
	var drawing bytes.Buffer
	if err := c.Write(&drawing, SVG); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(drawing.Bytes(), []byte("NaN")) || bytes.Contains(drawing.Bytes(), []byte("Inf")) {
		t.Error("the SVG contains NaN or Inf as a coordinate")
	}
	for d := xml.NewDecoder(&drawing); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestStepsAreOnCurve checks that only a few points are drawn, however many breakpoints a curve
// has, and that every point is on the curve.
func TestStepsAreOnCurve(t *testing.T) {
	h := new(profile.Histogram)
	for d := range uint64(1 << 16) {
		h.AddN(d, 1+d%7)
	}
	c := profile.NewCurve(h, 5)
	points := curveSteps(c)
	if len(points) > 1700 {
		t.Errorf("%d points for 16 doublings of the capacity, want at most 1700", len(points))
	}
	for _, p := range points {
		capacityLines := uint64(math.Round(math.Exp2(p.X)))
		if want := percent(c.Misses(capacityLines), c.Accesses); math.Abs(p.Y-want) > 1e-9 {
			t.Errorf("miss ratio at %d lines = %g %%, want %g %%", capacityLines, p.Y, want)
		}
	}
	if last := points[len(points)-1]; last.X != 17 || last.Y != percent(5, c.Accesses) {
		t.Errorf("last point = %v, want the footprint's miss ratio at 2^17 lines", last)
	}
}
