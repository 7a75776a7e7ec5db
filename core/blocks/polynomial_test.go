package blocks

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The counts of a nest whose trips depend on a parameter are polynomials in it.
func TestPolynomials(t *testing.T) {
	m, err := sheetOf(t, nest(2), strings.Replace(nestSheet, "= 2", "= 1", 1))
	if err != nil {
		t.Fatal(err)
	}
	list, err := m.Polynomials("n", 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		got = append(got, p.Text("n"))
	}
	if want := "1, 1/4*n + 1, 1/4*n^2 + 1/4*n, 1/4*n, 1/4*n^2, 1"; strings.Join(got, ", ") != want {
		t.Errorf("counts are %s, want %s", strings.Join(got, ", "), want)
	}
	if list, err = m.Polynomials("n", 1, nil); err != nil || list[4] != nil || list[3] == nil {
		t.Errorf("of degree 1: %v, %v; want the loop outside only", list, err)
	}
	if c, err := m.System.Solve(); err != nil || c.Exact[4] != 250*1000 {
		t.Errorf("the system is not as before: %v, %v", c.Exact, err)
	}
	for _, bad := range []struct {
		parameter string
		degree    int
		want      string
	}{{"k", 2, "p.txt: there is no parameter k"}, {"n", 99, "polynomials of degree 99"}} {
		if _, err := m.Polynomials(bad.parameter, bad.degree, nil); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %s", err, bad.want)
		}
	}
}

// A polynomial comes back from its values.
func TestInterpolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Polynomial
		for range rapid.IntRange(0, 5).Draw(t, "coefficients") {
			p = append(p, big.NewRat(int64(rapid.IntRange(-5, 5).Draw(t, "numerator")), int64(rapid.IntRange(1, 4).Draw(t, "denominator"))))
		}
		from := big.NewRat(int64(rapid.IntRange(-9, 9).Draw(t, "from")), 2)
		var values []*big.Rat
		for i := range 8 {
			values = append(values, p.At(new(big.Rat).Add(from, big.NewRat(int64(i), 1))))
		}
		q := interpolate(from, values, 5)
		for i := range 20 {
			at := big.NewRat(int64(i-10), 3)
			if q == nil || p.At(at).Cmp(q.At(at)) != 0 {
				t.Fatalf("%s came back as %s", p.Text("x"), q.Text("x"))
			}
		}
	})
}
