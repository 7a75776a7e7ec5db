// Package document writes SCALE.md and its plot from the measurements of package measure and the
// predictions of package scale.
package document

import (
	"bytes"
	_ "embed"
	"math"
	"strconv"
	"strings"
	"text/template"

	"github.com/stackglass/stackglass/tools/beam/pass"
	"github.com/stackglass/stackglass/tools/beam/scale"
	"github.com/stackglass/stackglass/tools/beam/scale/measure"
)

//go:embed SCALE.tmpl
var text string

// File is a file that the program writes.
type File struct {
	Name    string
	Content []byte
}

// Files returns SCALE.md and its plot. An error comes from the template.
func Files(m *measure.Measured) ([]File, error) {
	d := &document{m: m, costs: map[measure.Pattern]*scale.Costs{}}
	for _, p := range measure.Patterns {
		d.costs[p] = m.Costs(p)
	}
	t, err := template.New("SCALE.md").Funcs(template.FuncMap{
		"constants": d.constants, "fixed": d.fixed, "traces": d.traces, "check": d.check,
		"predictions": d.predictions, "stops": d.stops, "moves": d.moves, "indexOf": d.indexOf, "steps": d.steps, "blocks": d.blocks,
	}).Parse(text)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, m); err != nil {
		return nil, err
	}
	return []File{{"SCALE.md", b.Bytes()}, {"speedup.svg", d.plot()}}, nil
}

type document struct {
	m     *measure.Measured
	costs map[measure.Pattern]*scale.Costs
}

// table is a Markdown table. The first row is the header, and all columns except the first are
// right-aligned.
type table [][]string

func (t *table) row(cells ...string) { *t = append(*t, cells) }

func (t table) String() string {
	var b strings.Builder
	for i, cells := range t {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---" + strings.Repeat("|--:", len(cells)-1) + "|\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// digits formats a number with three significant digits.
func digits(x float64) string {
	switch {
	case math.IsInf(x, 0) || math.IsNaN(x):
		return "–"
	case x == math.Trunc(x) && x < 1000:
		return strconv.Itoa(int(x))
	case x >= 999.5:
		n := strconv.FormatInt(int64(math.Round(x)), 10)
		for i := len(n) - 3; i > 0; i -= 3 {
			n = n[:i] + "," + n[i:]
		}
		return n
	}
	places := max(0, 2-int(math.Floor(math.Log10(x))))
	return strconv.FormatFloat(x, 'f', min(places, 4), 64)
}

// nanoseconds, seconds and bytes format quantities for human readers.
func nanoseconds(s float64) string { return digits(s * 1e9) }

func seconds(s float64) string {
	switch {
	case s < 1:
		return digits(s*1000) + " ms"
	case s < 300:
		return digits(s) + " s"
	case s < 3*3600:
		return digits(s/60) + " min"
	case s < 72*3600:
		return digits(s/3600) + " h"
	}
	return digits(s/86400) + " d"
}

func size(n float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB", "TB"} {
		if n < 1000 {
			return digits(n) + " " + unit
		}
		n /= 1000
	}
	return digits(n) + " PB"
}

// power formats a number as a power of ten or of two.
func power(x float64) string {
	if e := math.Log10(x); e == math.Trunc(e) && e > 3 {
		return "10" + super(int(e))
	}
	if e := math.Log2(x); e == math.Trunc(e) && e > 12 {
		return "2" + super(int(e))
	}
	return digits(x)
}

func super(n int) string {
	return strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(strconv.Itoa(n))
}

// constants returns a table of the costs of a line and of a reference, by pattern.
func (d *document) constants() string {
	t := table{{"pattern", "lines", "plain, ns/ref", "segment, ns/ref", "join, ns/line", "encode, ns/line", "decode, ns/line", "sent, B/line", "segment, B/line", "join, B/line"}}
	for _, p := range measure.Patterns {
		c := d.costs[p]
		for i, at := range c.Join {
			memory := func(c scale.Curve) string {
				for _, m := range c {
					if m.Lines == at.Lines {
						return digits(m.Cost)
					}
				}
				return ""
			}
			t.row(string(p), power(at.Lines), nanoseconds(c.Plain[i].Cost), nanoseconds(c.Analyse[i].Cost), nanoseconds(at.Cost),
				nanoseconds(c.Encode[i].Cost), nanoseconds(c.Decode[i].Cost), digits(c.Bytes[i].Cost), memory(c.SegmentBytes), memory(c.JoinBytes))
		}
	}
	return t.String()
}

func (d *document) fixed() string {
	f, t := &d.m.Fixed, table{{"what", "costs"}}
	t.row("an empty job, on this machine's runner", seconds(f.Job))
	t.row("a reference in a segment with 8 lines", nanoseconds(d.m.Hot)+" ns")
	t.row("a reference that is only read: with 8 lines; of the chase", nanoseconds(d.m.HotRead)+" ns; "+nanoseconds(f.Read)+" ns")
	for _, share := range []string{"0.1", "0.01"} {
		t.row("a reference of the chase, with a sample of "+share+" of the lines", nanoseconds(d.m.Sampled["chase "+share])+" ns")
	}
	t.row("a segment, however short: its tables are built and encoded", seconds(f.Segment))
	t.row("a part of a join, however short", seconds(f.Join))
	t.row("a chunk of the index: reading and planning", nanoseconds(f.Chunk)+" ns")
	t.row("a memory block in a layout: encoding; size when sent", nanoseconds(f.Block)+" ns; "+digits(f.BlockBytes)+" B")
	t.row("the network, to and from a worker (assumed)", size(f.Network)+"/s")
	return t.String()
}

// traces returns a table of the costs of appending and sending.
func (d *document) traces() string {
	t := table{{"trace", "references", "lines", "stretches of", "stretches", "plain, ns/ref", "segments, ns/ref", "segments / plain", "joins, share of time", "sent, B/ref", "sent, B/line", "finishing"}}
	for _, one := range d.m.Traces {
		v := one.Steps
		segments := (v["leaf.analyse"] + v["leaf.encode"] + v["leaf.pack"]) / v["leaf.references"]
		joins := v.Joins()
		sent := v["leaf.packed"] + v["node.packed"]
		plain := v["plain"] / v["all"]
		all := segments*v["leaf.references"] + joins + v["rootDecode"] + v["finish"]
		t.row(one.Name, digits(v["all"]), digits(v["footprint"]), power(one.Stretch), digits(v["stretches"]), nanoseconds(plain), nanoseconds(segments), percent(segments/plain-1, true),
			percent(joins/all, false), digits(sent/v["all"]), digits(sent/(v["leaf.lines"]+v["node.out"])), seconds(v["rootDecode"]+v["finish"]))
	}
	return t.String()
}

func percent(x float64, sign bool) string {
	s := ""
	if sign && x >= 0 {
		s = "+"
	}
	return s + strconv.FormatFloat(100*x, 'f', 1, 64) + " %"
}

// job predicts the job of a measured trace. The cost of a reference in the undivided pass and the
// number of lines are the trace's own; the costs of states are a pattern's.
func (d *document) job(one *measure.Trace, of measure.Pattern, workers float64) scale.Estimate {
	v := one.Steps
	stretch := v["leaf.references"] / v["stretches"]
	c, f := *d.costs[of], d.m.Fixed
	f.Network = 0 // everything runs in one process
	if len(d.m.Jobs) > 0 {
		f.Job = d.m.Jobs[min(int(workers), len(d.m.Jobs))-1]
	}
	c.PerReference = v["leaf.lines"] / v["leaf.references"]
	c.Plain = scale.Curve{{Lines: 1, Cost: v["plain"] / v["all"]}}
	c.Analyse = scale.Curve{{Lines: 1, Cost: v["plain"] / v["all"]}}
	c.TraceBytes = one.Chunks["bytes"] / v["all"]
	return scale.Predict(scale.Job{References: v["leaf.references"], Footprint: v["footprint"], Workers: workers, Stretch: stretch, FanIn: one.FanIn}, &c, &f)
}

// check returns a table that compares the model with runs.
func (d *document) check() string {
	t := table{{"trace", "segments", "measured", "joins", "measured", "finishing", "measured", "pipeline, 1 lane", "measured", "2 lanes", "measured"}}
	for i := range d.m.Traces {
		one := &d.m.Traces[i]
		v := one.Steps
		between := func(of func(e *scale.Estimate) float64, workers float64) string {
			var list []float64
			for _, p := range measure.Patterns {
				if p == measure.Sweep && one.Name == "chase" {
					continue
				}
				e := d.job(one, p, workers)
				list = append(list, of(&e))
			}
			low, high := seconds(list[0]), seconds(list[len(list)-1])
			if low == high {
				return low
			}
			return low + " – " + high
		}
		cells := []string{one.Name,
			between(func(e *scale.Estimate) float64 { return e.Analyse }, 1), seconds(v["leaf.analyse"] + v["leaf.encode"] + v["leaf.pack"]),
			between(func(e *scale.Estimate) float64 { return e.Join }, 1), seconds(v.Joins()),
			between(func(e *scale.Estimate) float64 { return e.Finish }, 1), seconds(v["rootDecode"] + v["finish"]),
		}
		for lanes, got := range one.Wall {
			cells = append(cells, between(func(e *scale.Estimate) float64 { return e.Total }, float64(lanes+1)), seconds(got))
		}
		t.row(cells...)
	}
	return t.String()
}

// predictions returns a table of predictions for the pipeline with its defaults.
func (d *document) predictions() string {
	t := table{{"references", "lines", "pattern", "plain", "1 worker", "32", "1,024", "speed-up with 1,024", "sent", "memory: segment", "root", "fits"}}
	for _, references := range []float64{1e9, 1e11, 1e13} {
		for _, footprint := range []float64{1e6, 1e7, 1e8, 1e9, 1e10} {
			for _, p := range measure.Patterns {
				c := d.costs[p]
				if footprint > references*c.PerReference {
					continue
				}
				cells := []string{power(references), power(footprint), string(p)}
				var e scale.Estimate
				for _, workers := range []float64{1, 32, 1024} {
					e = scale.Predict(scale.Of(references, footprint, workers), c, &d.m.Fixed)
					if len(cells) == 3 {
						cells = append(cells, seconds(e.Plain))
					}
					cells = append(cells, seconds(e.Total))
				}
				fits := "no: 2³² lines"
				if e.Fits {
					fits = "yes"
				}
				t.row(append(cells, digits(e.Speedup()), size(e.Sent), size(e.SegmentMemory), size(e.RootMemory), fits)...)
			}
		}
	}
	return t.String()
}

// stops returns a table of the numbers of workers beyond which doubling them speeds up a job by
// less than half.
func (d *document) stops() string {
	t := table{{"references", "pattern", "10⁶ lines", "10⁷", "10⁸", "10⁹", "10¹⁰"}}
	for _, references := range []float64{1e9, 1e10, 1e11, 1e12, 1e13} {
		for _, p := range measure.Patterns {
			cells := []string{power(references), string(p)}
			for _, footprint := range []float64{1e6, 1e7, 1e8, 1e9, 1e10} {
				if footprint > references*d.costs[p].PerReference {
					cells = append(cells, "")
					continue
				}
				j := scale.Of(references, footprint, 1)
				workers := scale.Half(j, d.costs[p], &d.m.Fixed)
				j.Workers = workers
				e := scale.Predict(j, d.costs[p], &d.m.Fixed)
				cells = append(cells, digits(workers)+" (×"+digits(e.Speedup())+")")
			}
			t.row(cells...)
		}
	}
	return t.String()
}

// reference is the job of the tables about the effects of the parameters.
func reference() scale.Job { return scale.Of(1e12, 1e7, 1024) }

// steps returns a table of the steps of one job.
func (d *document) steps() string {
	t := table{{"step", "sweep: nodes", "lines of a part", "time", "chase: nodes", "lines of a part", "time"}}
	a := scale.Predict(reference(), d.costs[measure.Sweep], &d.m.Fixed)
	b := scale.Predict(reference(), d.costs[measure.Chase], &d.m.Fixed)
	t.row("begin: the index", "", "", seconds(a.Begin), "", "", seconds(b.Begin))
	t.row("segments", digits(a.Segments), "", seconds(a.Analyse), digits(b.Segments), "", seconds(b.Analyse))
	for i := range a.Levels {
		x, y := a.Levels[i], b.Levels[i]
		t.row("joins, level "+strconv.Itoa(i+1), digits(x.Nodes), digits(x.In), seconds(x.Seconds), digits(y.Nodes), digits(y.In), seconds(y.Seconds))
	}
	t.row("finishing", "1", digits(reference().Footprint), seconds(a.Finish), "1", digits(reference().Footprint), seconds(b.Finish))
	t.row("all", "", "", seconds(a.Total), "", "", seconds(b.Total))
	t.row("with unlimited workers", "", "", seconds(d.least(measure.Sweep)), "", "", seconds(d.least(measure.Chase)))
	return t.String()
}

func (d *document) least(p measure.Pattern) float64 {
	return scale.Serial(reference(), d.costs[p], &d.m.Fixed).Total
}

// moves returns a table of the effects of other stretches, fan-ins and samples.
func (d *document) moves() string {
	t := table{{"what", "sweep: time", "speed-up", "scales to", "sent", "chase: time", "speed-up", "scales to", "sent"}}
	add := func(name string, change func(j *scale.Job), share float64) {
		cells := []string{name}
		for _, p := range measure.Patterns {
			j, c := reference(), d.costs[p]
			plain := scale.Predict(j, c, &d.m.Fixed).Plain
			if change != nil {
				change(&j)
			}
			if share < 1 {
				read := max(0, d.m.Sampled[string(p)+" 0.01"]-0.01*c.Plain.At(1<<20))
				j, c = scale.Sampled(j, c, share, read)
			}
			e := scale.Predict(j, c, &d.m.Fixed)
			cells = append(cells, seconds(e.Total), digits(plain/e.Total), digits(scale.Half(j, c, &d.m.Fixed)), size(e.Sent))
		}
		t.row(cells...)
	}
	add("the defaults: stretches of "+power(pass.MostReferences)+", fan-in "+strconv.Itoa(pass.DefaultFanIn), nil, 1)
	for bits := 25; bits <= 32; bits++ {
		if bits != 26 {
			add("stretches of 2"+super(bits), func(j *scale.Job) { j.Stretch = float64(uint64(1) << bits) }, 1)
		}
	}
	for _, fanIn := range []float64{2, 3, 4, 16, 64} {
		add("fan-in "+digits(fanIn), func(j *scale.Job) { j.FanIn = fanIn }, 1)
	}
	for _, share := range []string{"0.1", "0.01"} {
		x, _ := strconv.ParseFloat(share, 64)
		add("a sample of "+share+" of the lines", nil, x)
	}
	return t.String()
}

// blocks returns a table of the costs of layouts of memory blocks.
func (d *document) blocks() string {
	t := table{{"live blocks", "before the analysis", "whole job", "layouts, sent"}}
	for _, blocks := range []float64{0, 1e3, 1e4, 1e5, 1e6, 1e7} {
		j := reference()
		j.Blocks = blocks
		e := scale.Predict(j, d.costs[measure.Sweep], &d.m.Fixed)
		t.row(digits(blocks), seconds(e.Begin), seconds(e.Total), size(e.Stretches*blocks*d.m.Fixed.BlockBytes))
	}
	return t.String()
}

// indexOf returns the cost of the index of a long trace.
func (d *document) indexOf() string {
	var list []string
	for _, p := range measure.Patterns {
		chunks := 1e13 / scale.ChunkReferences(d.costs[p])
		list = append(list, seconds(chunks*d.m.Fixed.Chunk)+" for 10¹³ references of a "+string(p)+" ("+digits(chunks)+" chunks)")
	}
	return strings.Join(list, "; ")
}
