package report

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDifference(t *testing.T) {
	for _, c := range []struct {
		a, b                     Value
		human, plain, change, as string
	}{
		{Count(5), Count(3), "-2", "-2", "-40.0 %", "-0.4"},
		{Count(3), Count(5), "+2", "2", "+66.7 %", "0.6666666666666666"},
		{Count(7), Count(7), "0", "0", "0 %", "0"},
		{Count(0), Count(0), "0", "0", "0 %", "0"},
		{Count(0), Count(4), "+4", "4", "–", ""},
		{Count(math.MaxUint64), Count(0), "-18,446,744,073,709,551,615", "-18446744073709551615", "-100 %", "-1"},
		{Count(1 << 63), Count(1<<63 + 1), "+1", "1", "+0.0000000000000000108 %", "1.0842021724855044e-19"},
		{Bytes(1 << 10), Bytes(3 << 10), "+2 KiB", "2048", "+200 %", "2"},
		{Ratio(0.5), Ratio(0.25), "-25.000 points", "-0.25", "-50.0 %", "-0.5"},
		{Real(2000), Real(1.5), "-≈1,999", "-1998.500", "-99.9 %", "-0.99925"},
		{Count(2), Real(2.5), "+≈1", "0.500", "+25.0 %", "0.25"},
		{Decimal(-2), Decimal(2), "+4.00", "4", "+200 %", "2"},
		{TextOf("full"), TextOf("8"), "–", "", "–", ""},
		{None(), Count(1), "–", "", "–", ""},
		{Difference(Count(3), Count(0)), Count(0), "+3", "3", "+100 %", "1"},
		{Count(2), Difference(Count(3), Count(0)), "-5", "-5", "-250 %", "-2.5"},
		{Difference(Ratio(0.5), Ratio(0.25)), Ratio(0.25), "+50.000 points", "0.5", "+200 %", "2"},
		{Difference(Count(math.MaxUint64), Count(0)), Count(1), "–", "", "–", ""},
		{Change(Count(1), Count(2)), Count(1), "–", "", "–", ""},
	} {
		d, share := Difference(c.a, c.b), Change(c.a, c.b)
		if d.Human() != c.human || d.Plain() != c.plain {
			t.Errorf("%s to %s: difference %q and %q, want %q and %q", c.a.Plain(), c.b.Plain(), d.Human(), d.Plain(), c.human, c.plain)
		}
		if share.Human() != c.change || share.Plain() != c.as {
			t.Errorf("%s to %s: change %q and %q, want %q and %q", c.a.Plain(), c.b.Plain(), share.Human(), share.Plain(), c.change, c.as)
		}
	}
}

func TestDifferencesInCustomStyle(t *testing.T) {
	w := Words{
		Count: func(n uint64) string { return fmt.Sprint("n", n) },
		Real:  func(x float64) string { return fmt.Sprint("x", x) },
		Share: func(x float64) string { return fmt.Sprint(100*x, "\u202f%") },
	}
	for want, v := range map[string]Value{
		"-n2": Difference(Count(5), Count(3)), "+x0.5": Difference(Decimal(1), Decimal(1.5)),
		"-25 points": Difference(Ratio(0.5), Ratio(0.25)), "-50\u202f%": Change(Ratio(0.5), Ratio(0.25)), "n0": Difference(Count(5), Count(5)),
	} {
		if got := v.Shown(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestDifferenceIsExact compares differences with results of package math/big.
func TestDifferenceIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		want := new(big.Int).Sub(new(big.Int).SetUint64(b), new(big.Int).SetUint64(a))
		if got := Difference(Count(a), Count(b)).Plain(); got != want.String() {
			t.Fatalf("difference from %d to %d = %s, want %s", a, b, got, want)
		}
		c := rapid.Uint64().Draw(t, "c")
		from, to := Difference(Count(c), Count(a)), Difference(Count(c), Count(b))
		if got := Difference(from, to).Plain(); got != want.String() {
			t.Fatalf("difference from %s to %s = %s, want %s", from.Plain(), to.Plain(), got, want)
		}
		other := new(big.Int).Sub(new(big.Int).SetUint64(c), new(big.Int).SetUint64(a))
		if got := Compare(Difference(Count(a), Count(b)), Difference(Count(a), Count(c))); got != other.Cmp(want) {
			t.Fatalf("Compare of the differences %s and %s = %d, want %d", want, other, got, other.Cmp(want))
		}
	})
}

func levels(rows ...string) Table {
	t := Table{Key: "levels", Title: "Levels", Columns: []Column{
		{Key: "name", Label: "level"}, {Key: "misses", Label: "misses"}, {Key: "method", Label: "method"}, {Key: "size", Label: "size"}}}
	for _, row := range rows {
		var name, method string
		var misses uint64
		fmt.Sscan(row, &name, &misses, &method)
		t.Add(TextOf(name), Count(misses), TextOf(method), Count(uint64(len(t.Rows))))
	}
	return t
}

func TestJoinTables(t *testing.T) {
	j := Join(levels("L1 10 exact", "L2 5 exact"), levels("L1 12 exact", "L2 4 sdcm", "L3 1 exact"), Key{Columns: []string{"name"}, Without: []string{"size"}})
	csv := func(t Table) string { return string(t.CSV()) }
	if got, want := csv(j.Table("levels")), `name,in,number,a,b,difference,change
L1,both,misses,10,12,2,0.2
L2,both,misses,5,4,-1,-0.2
L2,both,method,exact,sdcm,,
L3,B,misses,,1,,
`; got != want {
		t.Errorf("table:\n%s\nwant:\n%s", got, want)
	}
	misses := j.Pick("misses", "no such")
	misses.SortByDifference(0)
	if got, want := csv(misses.Brief("levels")), "name,in,a,b,difference,change\nL1,both,10,12,2,0.2\nL2,both,5,4,-1,-0.2\nL3,B,,1,,\n"; got != want {
		t.Errorf("brief:\n%s\nwant:\n%s", got, want)
	}
	if got, want := csv(misses.Wide("levels")), "name,in,misses_a,misses_b,misses_difference,misses_change\nL1,both,10,12,2,0.2\nL2,both,5,4,-1,-0.2\nL3,B,,1,,\n"; got != want {
		t.Errorf("wide:\n%s\nwant:\n%s", got, want)
	}
}

func TestJoinEmptyTables(t *testing.T) {
	by := Key{Columns: []string{"name"}, Without: []string{"size"}, Counts: true}
	j := Join(Table{}, levels("L1 10 exact"), by)
	wide := j.Wide("levels")
	if got, want := string(wide.CSV()), "name,in,misses_a,misses_b,misses_difference,misses_change\nL1,B,0,10,10,\n"; got != want || j.Title != "Levels" {
		t.Errorf("%s%q, want\n%s", got, j.Title, want)
	}
	if empty := Join(Table{}, Table{}, by).Brief("none"); len(empty.Rows) != 0 {
		t.Error("Join of empty tables returned rows:", empty.Rows)
	}
}

// countTable returns a table with one name and one number per row.
func countTable(names []uint64, numbers []uint64) Table {
	t := Table{Columns: []Column{{Key: "distance"}, {Key: "count"}}}
	for i := range names {
		t.Add(Count(names[i]), Count(numbers[i]))
	}
	return t
}

// naiveJoin is a simple implementation of Join. naiveJoin handles the rows of table b one by one.
// Each row is joined to the first row of table a that has the same name and has not been joined
// yet. A row without a match is inserted after the previous row.
func naiveJoin(a, b Table) (lines []string) {
	for _, row := range a.Rows {
		lines = append(lines, row[0].Plain()+" A "+row[1].Plain()+" 0")
	}
	at := 0
	for _, row := range b.Rows {
		alone := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, row[0].Plain()+" A ") })
		if alone < 0 {
			lines = slices.Insert(lines, at, row[0].Plain()+" B 0 "+row[1].Plain())
			at++
			continue
		}
		words := strings.Fields(lines[alone])
		lines[alone], at = words[0]+" both "+words[2]+" "+row[1].Plain(), alone+1
		for at < len(lines) && strings.Contains(lines[at], " B ") {
			at++ // skip rows of table b that were inserted at this position
		}
	}
	return lines
}

func TestJoinEqualsReference(t *testing.T) {
	small := rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 12)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) Table {
			names := small.Draw(t, name)
			numbers := make([]uint64, len(names))
			for i := range numbers {
				numbers[i] = rapid.Uint64().Draw(t, "number")
			}
			return countTable(names, numbers)
		}
		a, b := draw("a"), draw("b")
		j := Join(a, b, Key{Columns: []string{"distance"}, Counts: true})
		var got []string
		for i := range j.Rows {
			r := &j.Rows[i]
			got = append(got, strings.Join([]string{r.Name[0].Plain(), sides.of[r.In], r.A[0].Plain(), r.B[0].Plain()}, " "))
		}
		want := naiveJoin(a, b)
		if isAscending(j.Rows) {
			// If both tables are in ascending order, the joined table is also in ascending order. The joined
			// rows are then the rows of naiveJoin's result in a different order.
			slices.Sort(got)
			slices.Sort(want)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// TestJoinOfAscendingTablesIsAscending checks that distances stay in order, and that words such as
// "inf" come last.
func TestJoinOfAscendingTablesIsAscending(t *testing.T) {
	a, b := countTable([]uint64{0, 4, 8}, []uint64{1, 1, 1}), countTable([]uint64{0, 6, 12}, []uint64{1, 1, 1})
	a.Add(TextOf("inf"), Count(3))
	j := Join(a, b, Key{Columns: []string{"distance"}, Counts: true})
	var order []string
	for i := range j.Rows {
		order = append(order, j.Rows[i].Name[0].Plain())
	}
	if got := strings.Join(order, " "); got != "0 4 6 8 12 inf" {
		t.Errorf("the order is %s, want 0 4 6 8 12 inf", got)
	}
}
