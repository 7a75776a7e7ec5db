package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/tools/beam/pass"
	"github.com/stackglass/stackglass/tools/beam/scale"
)

// Measured contains the measurements of a machine.
type Measured struct {
	Machine string
	Network float64            // bytes per second, assumed
	Sizes   []Size             // measurements of the patterns
	Hot     float64            // seconds per reference, with 8 lines
	HotRead float64            // the same, if references are only read
	Base    float64            // bytes of memory of a process with hardly any lines
	Sampled map[string]float64 // seconds per reference, with 2^20 lines, by pattern and sampled share
	Fixed   scale.Fixed
	Jobs    []float64 // seconds of an empty job, with one lane and with two lanes
	Traces  []Trace
	Largest float64 // number of references of the chase among the traces
}

// Size contains the measurements of a pattern with a certain number of lines, as medians.
type Size struct {
	Pattern Pattern
	Lines   float64
	Segment Values
	Two     Values // a join of two segments
	Three   Values
	Plain   float64 // seconds per reference
	Bytes   float64 // per reference in the file
}

// Trace contains the measurements of a whole trace.
type Trace struct {
	Name    string
	Stretch float64
	FanIn   float64
	Steps   Values
	Chunks  Values
	Wall    []float64 // wall-clock seconds of the pipeline, with one lane and with two lanes
	CPU     []float64 // processor seconds of the same runs
}

// Options select what to measure.
type Options struct {
	Self   string   // this program, which measures parts when its first argument is -part
	Folder string   // for gigabytes of temporary files
	Beam   string   // program of the pipeline; "": the pipeline is not run
	Traces []string // .sgt files
	Runs   int      // number of runs for each median
	Bits   []int    // logarithms of the numbers of lines
	Chase  uint64   // number of references in the largest trace
	Log    io.Writer
}

// longest is the number of references in the traces that determine the cost of a reference.
const longest = 1 << 23

// longBits is the logarithm of the number of lines from which a single run is long enough to
// measure.
const longBits = 20

// Measure measures the constants of this machine. It takes minutes.
func Measure(o Options) (*Measured, error) {
	m := &Measured{Network: 1e9, Sampled: map[string]float64{}}
	for _, p := range Patterns {
		for _, bits := range o.Bits {
			s, err := o.size(p, bits)
			if err != nil {
				return nil, err
			}
			m.Sizes = append(m.Sizes, *s)
		}
	}
	if len(o.Bits) > 0 {
		if err := o.fixed(m); err != nil {
			return nil, err
		}
	}
	if len(o.Traces) > 0 {
		if err := o.traces(m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// run measures a part in a number of separate processes, and returns the medians.
func (o *Options) run(times int, name string, args ...string) (Values, error) {
	fmt.Fprintln(o.Log, time.Now().Format(time.TimeOnly), name, strings.Join(args, " "))
	all := map[string][]float64{}
	for range times {
		c := exec.Command(o.Self, append([]string{"-part", name}, args...)...)
		c.Env = append(os.Environ(), "GOMAXPROCS=1")
		c.Stderr = o.Log
		out, err := c.Output()
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
		}
		v := Values{}
		if err := json.Unmarshal(out, &v); err != nil {
			return nil, err
		}
		v["most"] = mostBytes(c.ProcessState)
		for key, x := range v {
			all[key] = append(all[key], x)
		}
	}
	v := Values{}
	for key, list := range all {
		slices.Sort(list)
		v[key] = list[len(list)/2]
	}
	return v, nil
}

func (o *Options) path(name string) string { return filepath.Join(o.Folder, name) }

func text(n uint64) string { return strconv.FormatUint(n, 10) }

// size measures a pattern with 1 << bits lines.
func (o *Options) size(p Pattern, bits int) (*Size, error) {
	if bits >= longBits {
		some := *o
		some.Runs = 1
		o = &some
	}
	round, apart := uint64(1)<<bits, p
	if p == Sweep {
		apart = stride
	}
	s := &Size{Pattern: p}
	long, short := o.path("long.sgt"), o.path("short.sgt")
	defer os.Remove(long)
	defer os.Remove(short)
	// Three segments of one round each, for joins.
	if _, err := o.run(1, "write", string(apart), strconv.Itoa(bits), text(Head+3*round), short); err != nil {
		return nil, err
	}
	parts := []string{o.path("segment.0"), o.path("segment.1"), o.path("segment.2")}
	made, err := o.run(1, "analyse", short, text(round), "3", o.path("segment"))
	if err != nil {
		return nil, err
	}
	s.Lines = made["lines"] / 3 // stretches begin at chunk borders if these are near
	if s.Two, err = o.run(o.Runs, "join", parts[:2]...); err != nil {
		return nil, err
	}
	if s.Three, err = o.run(o.Runs, "join", parts...); err != nil {
		return nil, err
	}
	// One long segment, for the cost of a reference.
	references := max(longest, 2*round)
	if p == Sweep {
		references = max(longest, p.References()*round)
	}
	if _, err := o.run(1, "write", string(p), strconv.Itoa(bits), text(Head+references), long); err != nil {
		return nil, err
	}
	if s.Segment, err = o.run(o.Runs, "analyse", long, text(references), "1", o.path("segment")); err != nil {
		return nil, err
	}
	plain, err := o.run(o.Runs, "plain", long)
	if err != nil {
		return nil, err
	}
	s.Plain = plain["plain"] / plain["references"]
	s.Bytes = plain["bytes"] / plain["references"]
	for _, name := range parts {
		err = errors.Join(err, os.Remove(name))
	}
	return s, err
}

// fixed measures the costs that do not depend on the pattern.
func (o *Options) fixed(m *Measured) error {
	name := o.path("hot.sgt")
	defer os.Remove(name)
	if _, err := o.run(1, "write", string(Chase), "3", text(Head+longest), name); err != nil {
		return err
	}
	hot, err := o.run(o.Runs, "analyse", name, text(longest), "1", o.path("segment"))
	if err != nil {
		return err
	}
	m.Hot = hot["analyse"] / hot["references"]
	const few, many = 64, 64
	segments, err := o.run(o.Runs, "analyse", name, text(few), strconv.Itoa(many), o.path("segment"))
	if err != nil {
		return err
	}
	passed, err := o.run(o.Runs, "read", name)
	if err != nil {
		return err
	}
	m.HotRead = passed["read"] / passed["references"]
	// Each stretch also reads the preceding references in its chunk.
	m.Fixed.Segment = max(0, (segments["analyse"]+segments["encode"]+segments["pack"])/many-Head*m.HotRead)
	var parts []string
	for i := range many {
		parts = append(parts, o.path("segment."+strconv.Itoa(i)))
	}
	joined, err := o.run(o.Runs, "join", parts...)
	if err != nil {
		return err
	}
	m.Base = joined["most"]
	m.Fixed.Join = (joined["unpack"] + joined["decode"] + joined["join"] + joined["encode"] + joined["pack"]) / many
	for _, name := range parts {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return err
	}
	layout, err := o.run(o.Runs, "layout", "1000000")
	m.Fixed.Block, m.Fixed.BlockBytes = layout["seconds"], layout["bytes"]
	return err
}

// traces measures the steps of each trace, and the whole pipeline.
func (o *Options) traces(m *Measured) error {
	chase := o.path("chase.sgt")
	if _, err := o.run(1, "write", string(Chase), "20", text(o.Chase), chase); err != nil {
		return err
	}
	m.Largest = float64(o.Chase)
	tiny := o.path("tiny.sgt")
	if _, err := o.run(1, "write", string(Chase), "3", "1000", tiny); err != nil {
		return err
	}
	var err error
	for lanes := 1; lanes <= 2; lanes++ {
		job, _, err := o.pipeline(tiny, 1<<20, lanes)
		if err != nil {
			return err
		}
		m.Jobs = append(m.Jobs, job)
	}
	m.Fixed.Job = m.Jobs[0]
	sweep := o.path("sweep.sgt")
	if _, err := o.run(1, "write", string(Sweep), "20", text(longest), sweep); err != nil {
		return err
	}
	for name, of := range map[string]Pattern{chase: Chase, sweep: Sweep} {
		for _, share := range []string{"0.1", "0.01"} {
			v, err := o.run(1, "sampled", name, share)
			if err != nil {
				return err
			}
			m.Sampled[string(of)+" "+share] = v["analyse"] / v["references"]
		}
	}
	v, err := o.run(1, "read", chase)
	if err != nil {
		return err
	}
	m.Fixed.Read = v["read"] / v["references"]
	names := append(slices.Clone(o.Traces), chase)
	for _, name := range names {
		o := *o
		t := Trace{Name: strings.TrimSuffix(filepath.Base(name), ".sgt"), Stretch: 1 << 20, FanIn: pass.DefaultFanIn}
		if name == chase {
			t.Stretch, o.Runs = 1<<23, 1 // the trace is long enough
		}
		stretch := text(uint64(t.Stretch))
		if t.Steps, err = o.run(o.Runs, "trace", name, stretch, strconv.Itoa(pass.DefaultFanIn)); err != nil {
			return err
		}
		if t.Chunks, err = o.run(o.Runs, "index", name); err != nil {
			return err
		}
		m.Traces = append(m.Traces, t)
	}
	for lanes := 1; lanes <= 2 && o.Beam != ""; lanes++ {
		for i, name := range names {
			o, t := *o, &m.Traces[i]
			if name == chase {
				o.Runs = 1
			}
			wall, used, err := o.pipeline(name, uint64(t.Stretch), lanes)
			if err != nil {
				return err
			}
			t.Wall, t.CPU = append(t.Wall, wall), append(t.CPU, used)
		}
	}
	last := m.Traces[len(m.Traces)-1].Chunks
	m.Fixed.Chunk = last["open"] / last["runs"] / last["chunks"]
	m.Fixed.Network = m.Network
	return nil
}

// pipeline runs whole jobs, and returns the medians of their wall-clock seconds and processor
// seconds.
func (o *Options) pipeline(name string, stretch uint64, lanes int) (wallSeconds, used float64, err error) {
	if o.Beam == "" {
		return 0, 0, nil
	}
	fmt.Fprintln(o.Log, time.Now().Format(time.TimeOnly), "pipeline", name, stretch, lanes)
	var walls, useds []float64
	for range o.Runs {
		c := exec.Command(o.Beam, "--output", o.path("profiles"), "--references", text(stretch), "--lanes", strconv.Itoa(lanes), name)
		c.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(lanes))
		var out []byte
		w, err := wall(func() (err error) { out, err = c.CombinedOutput(); return err })
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, out)
		}
		walls = append(walls, w)
		useds = append(useds, (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds())
	}
	slices.Sort(walls)
	slices.Sort(useds)
	return walls[len(walls)/2], useds[len(useds)/2], nil
}

// layout measures the encoding of a layout of memory blocks, as in package pass.
func layout(blocks int) Values {
	list := make([]sites.Block, blocks)
	at := uint64(0x5581_0000_0000)
	for i := range list {
		list[i] = sites.Block{From: at, Bytes: uint64(16 + 16*(i*i%7)), Kind: profile.HeapObject, Site: uint32(i * i % 101)}
		at += list[i].Bytes + 16
	}
	v := Values{}
	packed, err := []byte(nil), error(nil)
	_ = v.timed("all", func() error { packed, err = pack(list); return err })
	return Values{"seconds": v["all"] / float64(blocks), "bytes": float64(len(packed)) / float64(blocks)}
}

// Costs returns the model's costs of a pattern.
func (m *Measured) Costs(of Pattern) *scale.Costs {
	c := &scale.Costs{PerReference: 1 / float64(of.References())}
	for _, s := range m.Sizes {
		if s.Pattern != of {
			continue
		}
		u := s.Lines
		add := func(to *scale.Curve, cost float64) { *to = append(*to, scale.Point{Lines: u, Cost: max(0, cost)}) }
		joined := s.Three["lines"]
		add(&c.Analyse, s.Segment["analyse"]/s.Segment["references"])
		add(&c.Plain, s.Plain)
		add(&c.Join, s.Three["join"]/(3*u))
		add(&c.Encode, (s.Three["encode"]+s.Three["pack"])/joined)
		add(&c.Decode, (s.Three["unpack"]+s.Three["decode"])/(3*u))
		add(&c.Bytes, s.Three["packed"]/joined)
		if u < leastForMemory {
			continue
		}
		add(&c.JoinBytes, (s.Three["most"]-m.Base)/(3*u+joined))
		add(&c.SegmentBytes, (s.Segment["most"]-m.Base)/s.Segment["lines"])
		c.TraceBytes = s.Bytes
	}
	return c
}

// leastForMemory is the minimum number of lines for measuring memory. With fewer lines, other data
// dominate the memory of a process.
const leastForMemory = 1 << 19

// Joins returns the duration of a trace's joins, including decoding and encoding.
func (v Values) Joins() float64 {
	return v["node.unpack"] + v["node.decode"] + v["node.join"] + v["node.encode"] + v["node.pack"]
}
