package scaling

import (
	"math"
	"math/big"
	"slices"
)

// at returns the law that predicts the value for the given parameters: the law itself, or the first
// of its alternatives if its value is negative.
func (l *Law) at(at []int64) *Law {
	if len(l.Others) > 0 && l.At(at) < 0 {
		for i := range l.Others {
			if l.Others[i].At(at) >= 0 {
				return &l.Others[i]
			}
		}
	}
	return l
}

// Interval returns the limits of the value for the given parameters. If an exact law has been
// checked, and its value is an integer, both limits are this value. Otherwise, the interval contains
// the values of all laws that describe the runs about equally well. The interval of an approximate
// law is as wide as the largest error of the law for a run that was left out, and becomes wider with
// the distance from the runs. If the value of a checked law is a fraction, the limits are its values
// for the nearest parameters with the same remainders as the runs.
func (l *Law) Interval(at []int64) (low, high float64) {
	if l.Kind == Exact && l.Checked > 0 {
		return l.exactInterval(at)
	}
	best := l.at(at)
	low = best.At(at)
	high = low
	laws := append([]Law{*best}, l.Others...)
	for i := range laws {
		v := laws[i].At(at)
		if v < 0 {
			continue
		}
		off := laws[i].LeftOut * laws[i].distance(at)
		low, high = min(low, v*(1-min(1, off))), max(high, v*(1+off))
	}
	return max(0, low), max(0, high)
}

// distance returns by how many times the range of the parameters, including the range of the runs,
// exceeds the range of the runs. Ranges are measured on a logarithmic scale.
func (l *Law) distance(at []int64) (most float64) {
	most = 1
	for j := range l.largest {
		low, high := math.Log(float64(max(1, l.smallest[j]))), math.Log(float64(max(1, l.largest[j])))
		if x := math.Log(float64(max(1, at[j]))); low < high {
			most = max(most, (max(x, high)-min(x, low))/(high-low))
		}
	}
	return most
}

// exactInterval returns the interval of a checked exact law.
func (l *Law) exactInterval(at []int64) (low, high float64) {
	v, ok := l.exactValue(at)
	if ok && v.IsInt() {
		f := max(0, l.At(at))
		return f, f
	}
	period := int64(1)
	for i := range l.Terms {
		if d := l.Terms[i].Factor.Denom(); d.IsInt64() {
			period = max(period, d.Int64())
		}
	}
	low, high = math.Inf(1), math.Inf(-1)
	for _, shift := range []int64{-period, 0, period} {
		for _, rounded := range []Function{LogUp, LogDown} {
			near := Law{Terms: slices.Clone(l.Terms)}
			for i := range near.Terms {
				if near.Terms[i].Function == Log {
					near.Terms[i].Function = rounded
				}
			}
			moved := slices.Clone(at)
			for j := range moved {
				moved[j] += shift
			}
			x := max(0, near.At(moved))
			low, high = min(low, x), max(high, x)
		}
	}
	return low, high
}

// isCertain reports whether the interval of the law contains only one value.
func (l *Law) isCertain(at []int64) bool {
	v, ok := new(big.Rat), false
	if l.Kind == Exact && l.Checked > 0 {
		v, ok = l.exactValue(at)
	}
	return ok && v.IsInt()
}
