package report

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func sample() *Document {
	levels := Table{Key: "levels", Title: "Levels", Columns: []Column{
		{Key: "name", Label: "level"},
		{Key: "accesses", Label: "accesses"},
		{Key: "miss_ratio", Label: "misses"},
	}}
	levels.Add(TextOf("L1"), Count(8469481), Ratio(0.0625))
	levels.Add(TextOf("L2 | big"), Count(17), Ratio(1))
	memory := Table{Key: "memory", Single: true, Columns: []Column{{Key: "accesses", Label: "accesses", Unit: "lines"}}}
	memory.Add(Real(1234.5))
	return &Document{
		Schema: "stackglass.sample", Version: 1,
		Input:    []Fact{{"file", "file", TextOf(`a "b".din`)}, {"complete", "complete", YesNo(true)}},
		Tables:   []Table{levels, memory},
		Warnings: []string{"one doubt"},
	}
}

func TestFormats(t *testing.T) {
	want := map[Format]string{
		Text: `file      a "b".din
complete  yes

Levels
level      accesses     misses
L1        8,469,481    6.250 %
L2 | big         17  100.000 %

accesses (lines)  ≈1,235
`,
		CSV: `name,accesses,miss_ratio
L1,8469481,0.0625
L2 | big,17,1
`,
		JSON: `{
  "schema": {"name": "stackglass.sample", "version": 1},
  "input": {"file": "a \"b\".din", "complete": true},
  "levels": [
    {"name": "L1", "accesses": 8469481, "miss_ratio": 0.0625},
    {"name": "L2 | big", "accesses": 17, "miss_ratio": 1}
  ],
  "memory": {"accesses": 1234.500},
  "warnings": [
    "one doubt"
  ]
}
`,
		Markdown: `| input | |
| --- | --- |
| file | a "b".din |
| complete | yes |

**Levels**

| level | accesses | misses |
| --- | ---: | ---: |
| L1 | 8,469,481 | 6.250 % |
| L2 \| big | 17 | 100.000 % |

| accesses (lines) |
| ---: |
| ≈1,235 |
`,
	}
	for _, f := range Formats() {
		var out strings.Builder
		if err := sample().Write(&out, f); err != nil {
			t.Fatal(err)
		}
		if out.String() != want[f] {
			t.Errorf("%s:\n%s\nwant:\n%s", f, out.String(), want[f])
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		count := rapid.Uint64().Draw(t, "count")
		table := Table{Key: "rows", Columns: []Column{{Key: "text"}, {Key: "count"}}}
		table.Add(TextOf(text), Count(count))
		var out strings.Builder
		d := Document{Schema: "s", Version: 1, Tables: []Table{table}, Warnings: []string{text}}
		if err := d.Write(&out, JSON); err != nil {
			t.Fatal(err)
		}
		var back struct {
			Rows []struct {
				Text  string
				Count uint64
			}
			Warnings []string
		}
		if err := json.Unmarshal([]byte(out.String()), &back); err != nil {
			t.Fatalf("%v in %s", err, out.String())
		}
		if back.Rows[0].Text != text || back.Rows[0].Count != count || back.Warnings[0] != text {
			t.Fatalf("the decoded JSON is %+v, want the text %q and the count %d", back, text, count)
		}
	})
}

func TestCSVRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// The text must not contain \r, because encoding/csv converts \r\n within quotes to \n.
		text := strings.ReplaceAll(rapid.String().Draw(t, "text"), "\r", "")
		table := Table{Columns: []Column{{Key: "text"}, {Key: "count"}}}
		table.Add(TextOf(text), Count(7))
		var out strings.Builder
		d := Document{Tables: []Table{table}}
		if err := d.Write(&out, CSV); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		if err != nil || rows[1][0] != text || rows[1][1] != "7" {
			t.Fatalf("the rows of the CSV are %q, error %v, want %q", rows, err, text)
		}
	})
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		value        Value
		human, plain string
	}{
		{Count(0), "0", "0"},
		{Count(999), "999", "999"},
		{Count(1000), "1,000", "1000"},
		{Count(math.MaxUint64), "18,446,744,073,709,551,615", "18446744073709551615"},
		{Real(1e6), "1,000,000", "1000000"},
		{Real(-1234567.25), "≈-1,234,567", "-1234567.250"},
		{Ratio(0.123456), "12.346 %", "0.123456"},
		{YesNo(false), "no", "false"},
		{Bytes(0), "0 B", "0"},
		{Bytes(1023), "1023 B", "1023"},
		{Bytes(32 << 10), "32 KiB", "32768"},
		{Bytes(770 * 64), "48.1 KiB", "49280"},
		{Bytes(1536 << 20), "1.50 GiB", "1610612736"},
		{Bytes(1000<<20 + 1), "1000 MiB", "1048576001"},
		{Bytes(1 << 60), "1 EiB", "1152921504606846976"},
		{None(), "–", ""},
	} {
		if got := c.value.Human(); got != c.human {
			t.Errorf("Human() = %s, want %s", got, c.human)
		}
		if got := c.value.Plain(); got != c.plain {
			t.Errorf("Plain() = %s, want %s", got, c.plain)
		}
	}
}

func TestColumns(t *testing.T) {
	got := Columns("ways", "size_bytes=size", "capacity_lines=capacity (lines)", "line (bytes)", "key=")
	want := []Column{
		{Key: "ways", Label: "ways"},
		{Key: "size_bytes", Label: "size"},
		{Key: "capacity_lines", Label: "capacity", Unit: "lines"},
		{Key: "line", Label: "line", Unit: "bytes"},
		{Key: "key"},
	}
	for i := range want {
		if got[i].Key != want[i].Key || got[i].Label != want[i].Label || got[i].Unit != want[i].Unit {
			t.Errorf("column %d: %q, %q, %q", i, got[i].Key, got[i].Label, got[i].Unit)
		}
	}
}

func TestParseFormat(t *testing.T) {
	for _, f := range Formats() {
		if got, err := ParseFormat(string(f)); got != f || err != nil {
			t.Errorf("ParseFormat(%q) = %q, %v", f, got, err)
		}
	}
	if _, err := ParseFormat("xml"); err == nil || err.Error() != `format "xml", want one of table, csv, json, md` {
		t.Errorf("xml: %v", err)
	}
}

func TestDecimal(t *testing.T) {
	for x, want := range map[float64][2]string{
		0: {"0", "0"}, 43.25: {"43.2", "43.25"}, 0.33333: {"0.333", "0.33333"}, 123456.7: {"123,457", "123456.7"}, -2: {"-2.00", "-2"},
		1e-7: {"0.000000100", "0.0000001"},
	} {
		if v := Decimal(x); v.Human() != want[0] || v.Plain() != want[1] || !v.IsNumber() {
			t.Errorf("Decimal(%v): Human() = %q, Plain() = %q, want %q", x, v.Human(), v.Plain(), want)
		}
	}
}

func TestCompare(t *testing.T) {
	ascending := []Value{Count(1<<63 + 1), Count(1 << 63), Ratio(7), Decimal(0.5), Count(0), None()}
	for i := range ascending {
		for j := range ascending {
			if got := Compare(ascending[i], ascending[j]); got != min(1, max(-1, i-j)) {
				t.Errorf("Compare(%s, %s) = %d", ascending[i].Human(), ascending[j].Human(), got)
			}
		}
	}
	if Compare(TextOf("a"), TextOf("b")) != -1 || Compare(TextOf("b"), None()) != -1 {
		t.Error("Compare does not order words in ascending order with missing values last")
	}
}

func TestValuesInCustomStyle(t *testing.T) {
	w := Words{
		Count: func(n uint64) string { return "count" }, Real: func(x float64) string { return "real" },
		Share: func(x float64) string { return "share" },
	}
	for want, v := range map[string]Value{
		"count": Bytes(3), "real": Decimal(0.5), "share": Ratio(0.5), "text": TextOf("text"), "yes": YesNo(true), "–": None(),
	} {
		if got := v.Shown(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTableAsHTML(t *testing.T) {
	table := Table{Title: "A < B", Columns: []Column{{Key: "name", Label: "name"}, {Key: "n", Label: "misses", Unit: "lines"}}}
	table.Add(TextOf(`"x" & 'y'`), Count(1234))
	table.Add(TextOf("bad \xff byte"), None())
	want := `<table>
<caption>A &lt; B</caption>
<thead><tr><th scope="col">name</th><th scope="col" class="n">misses (lines)</th></tr></thead>
<tbody>
<tr><th scope="row">&#34;x&#34; &amp; &#39;y&#39;</th><td class="n">1,234</td></tr>
<tr><th scope="row">bad ` + "\uFFFD" + ` byte</th><td class="n">–</td></tr>
</tbody></table>
`
	if got := string(table.AppendHTML(nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLongListsAreShortened(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		"0-3,8":                             "0-3,8",
		strings.Repeat("x", 99):             strings.Repeat("x", 99),
		"0,2" + strings.Repeat(",44", 2000): "0,2" + strings.Repeat(",44", 13) + " and 1,987 more",
	} {
		v := ListOf(text)
		if v.Human() != want || v.Plain() != text {
			t.Errorf("list %.60q: Human() = %q, Plain() = %.60q", text, v.Human(), v.Plain())
		}
	}
}
