package measure

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	_ "github.com/stackglass/stackglass/core/analysis/sample/estimate" // makes samples available
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Values are the measurements of a part, by name.
type Values map[string]float64

// Head is the number of references before the first stretch of a plan.
const Head = 1 << 17

// Part performs one measurement in this process. The parts and their arguments are:
//
//	write PATTERN BITS REFERENCES FILE     makes a trace
//	analyse FILE STRETCH COUNT OUT         so many stretches, each kept as OUT.0, OUT.1, …
//	join FILE…                             these segments
//	trace FILE STRETCH FANIN               a whole trace, undivided and in a tree
//	sampled FILE SHARE                     undivided, of a share of the lines
//	index FILE                             the index and the plan
//	read FILE                              the events alone
//	plain FILE                             undivided
//	layout BLOCKS                          where so many blocks of memory lie
func Part(name string, args []string) (Values, error) {
	number := func(i int) uint64 {
		n, _ := strconv.ParseUint(args[i], 10, 64)
		return n
	}
	least := map[string]int{"write": 4, "analyse": 4, "join": 2, "trace": 3, "sampled": 2, "index": 1, "read": 1, "plain": 1, "layout": 1}
	if n, known := least[name]; !known || len(args) < n {
		return nil, fmt.Errorf("%s with %d arguments: there is no such part", name, len(args))
	}
	switch name {
	case "write":
		return write(Pattern(args[0]), int(number(1)), number(2), args[3])
	case "analyse":
		return analyse(args[0], number(1), int(number(2)), args[3])
	case "join":
		return join(args)
	case "trace":
		return whole(args[0], number(1), int(number(2)))
	case "sampled":
		return sampled(args[0], args[1])
	case "index":
		return index(args[0])
	case "plain":
		return plain(args[0])
	case "layout":
		return layout(int(number(0))), nil
	}
	return read(args[0])
}

func write(p Pattern, lineBits int, references uint64, name string) (Values, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return Values{}, errors.Join(p.Write(f, lineBits, references), f.Close())
}

// The compression is the same as in package pass.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0))
)

// timed adds the processor seconds that do takes.
func (v Values) timed(name string, do func() error) error {
	begun := cpu()
	err := do()
	v[name] += (cpu() - begun).Seconds()
	return err
}

func (v Values) pack(p *profile.Profile) (packed []byte) {
	var b []byte
	_ = v.timed("encode", func() error { b = p.Encode(); return nil })
	v["raw"] += float64(len(b))
	_ = v.timed("pack", func() error { packed = packer.EncodeAll(b, nil); return nil })
	v["packed"] += float64(len(packed))
	return packed
}

func (v Values) unpack(packed []byte) (p *profile.Profile, err error) {
	var b []byte
	if err := v.timed("unpack", func() (err error) { b, err = unpacker.DecodeAll(packed, nil); return err }); err != nil {
		return nil, err
	}
	return p, v.timed("decode", func() (err error) { p, err = profile.Decode(b); return err })
}

var spec = analysis.Spec{}.WithDefaults()

// opened is an open trace with its plan.
type opened struct {
	file   *os.File
	bytes  int64
	source *sgt.Source
	plan   *analysis.Plan
}

func open(name string, stretch uint64) (*opened, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	o := &opened{file: f, bytes: st.Size()}
	if o.source, err = sgt.NewSource(name, f, o.bytes, nil); err != nil {
		return nil, err
	}
	o.plan, err = analysis.NewPlan(spec, o.source, stretch)
	return o, err
}

func (o *opened) reader() *sgt.Reader {
	r := sgt.NewReader(o.file.Name(), io.NewSectionReader(o.file, 0, o.bytes), sgt.Options{})
	r.Until(trace.Position{Chunk: trace.AtEnd})
	return r
}

// segment analyses a stretch.
func (o *opened) segment(v Values, s *analysis.Stretcher, number int) (p *profile.Profile, err error) {
	err = v.timed("analyse", func() error {
		s.Begin(o.plan.Stretches[number])
		for {
			if err := s.Step(); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
		}
		p = s.Segment(true).Profile
		return nil
	})
	if err == nil && p == nil {
		err = fmt.Errorf("%s: stretch %d cannot be a segment", o.file.Name(), number)
	}
	if err == nil {
		v["references"] += float64(p.Totals.AllReferences())
		v["lines"] += linesOf(p)
	}
	return p, err
}

func linesOf(p *profile.Profile) float64 { return float64(len(p.Segment.Lines[0].Stack)) }

func analyse(name string, stretch uint64, count int, out string) (Values, error) {
	o, err := open(name, stretch)
	if err != nil {
		return nil, err
	}
	if len(o.plan.Stretches) < count {
		return nil, fmt.Errorf("%s: it has %d stretches, and %d are asked for", name, len(o.plan.Stretches), count)
	}
	v := Values{}
	for i := range count {
		p, err := o.segment(v, analysis.NewStretcher(spec, o.source), i)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(out+"."+strconv.Itoa(i), v.pack(p), 0o666); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func join(names []string) (Values, error) {
	v := Values{}
	var list []*profile.Profile
	for _, name := range names {
		packed, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p, err := v.unpack(packed)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	joined, err := v.joined(list)
	if err != nil {
		return nil, err
	}
	v["lines"] = linesOf(joined)
	v.pack(joined)
	return v, nil
}

func (v Values) joined(list []*profile.Profile) (p *profile.Profile, err error) {
	return p, v.timed("join", func() (err error) { p, err = analysis.JoinSegments(spec, list...); return err })
}

// plain runs an undivided pass, like stackglass analyze with one worker.
func (o *opened) plain(spec analysis.Spec) (p *profile.Profile, err error) {
	r, err := analysis.NewRunner(spec, o.reader())
	if err != nil {
		return nil, err
	}
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		return nil, err
	}
	p = r.Finish(profile.State{})
	return p, p.EncodeTo(io.Discard)
}

// whole performs all steps of package pass on a trace, one after the other.
func whole(name string, stretch uint64, fanIn int) (Values, error) {
	v := Values{}
	o, err := open(name, stretch)
	if err != nil {
		return nil, err
	}
	var want, got *profile.Profile
	if err := v.timed("plain", func() (err error) { want, err = o.plain(spec); return err }); err != nil {
		return nil, err
	}
	v["footprint"], v["all"] = float64(want.Locality[0].Lines()), float64(want.Totals.AllReferences())
	leaves := Values{}
	var level [][]byte
	for i := range o.plan.Stretches {
		p, err := o.segment(leaves, analysis.NewStretcher(spec, o.source), i)
		if err != nil {
			return nil, err
		}
		level = append(level, leaves.pack(p))
	}
	v["stretches"] = float64(len(level))
	nodes := Values{}
	for levels := 0.0; len(level) > 1; {
		levels++
		v["levels"] = levels
		var up [][]byte
		for len(level) > 0 {
			n := min(fanIn, len(level))
			one, err := nodes.node(level[:n])
			if err != nil {
				return nil, err
			}
			up, level = append(up, one), level[n:]
		}
		level = up
	}
	v["root"] = float64(len(level[0]))
	root := Values{}
	rest, err := root.unpack(level[0])
	if err != nil {
		return nil, err
	}
	err = v.timed("finish", func() (err error) {
		var joined bool
		if got, joined, err = o.plan.Finish(o.reader(), o.source, analysis.Sequence(rest), func(analysis.Progress) error { return nil }); err == nil && !joined {
			err = errors.New("it was analysed as a whole")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(got.Encode(), want.Encode()) {
		return nil, fmt.Errorf("%s: the divided pass gives another profile than the plain one", name)
	}
	v["rootDecode"] = root["unpack"] + root["decode"]
	for _, of := range []struct {
		name string
		Values
	}{{"leaf.", leaves}, {"node.", nodes}} {
		for key, value := range of.Values {
			v[of.name+key] = value
		}
	}
	return v, nil
}

// node joins neighbours, as package pass does.
func (v Values) node(parts [][]byte) ([]byte, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	var list []*profile.Profile
	for _, packed := range parts {
		p, err := v.unpack(packed)
		if err != nil {
			return nil, err
		}
		v["in"] += linesOf(p)
		list = append(list, p)
	}
	joined, err := v.joined(list)
	if err != nil {
		return nil, err
	}
	v["out"] += linesOf(joined)
	return v.pack(joined), nil
}

func sampled(name, share string) (Values, error) {
	o, err := open(name, 0)
	if err != nil {
		return nil, err
	}
	options, err := sample.Parse("space=" + share)
	if err != nil {
		return nil, err
	}
	spec := spec
	spec.Sample = options
	v := Values{"references": float64(o.plan.References)}
	return v, v.timed("analyse", func() error { _, err := o.plain(spec.WithDefaults()); return err })
}

// indexRuns is the number of times that the index is read. Reading it once is too short to measure.
const indexRuns = 200

func index(name string) (Values, error) {
	v := Values{"runs": indexRuns}
	return v, v.timed("open", func() error {
		for range indexRuns {
			o, err := open(name, 1<<20)
			if err != nil {
				return err
			}
			v["chunks"], v["references"], v["bytes"] = float64(len(o.source.Chunks())), float64(o.plan.References), float64(o.bytes)
			if err := o.file.Close(); err != nil {
				return err
			}
		}
		return nil
	})
}

// read measures a worker that reads only the allocations of memory blocks.
func read(name string) (Values, error) {
	o, err := open(name, 1<<40)
	if err != nil {
		return nil, err
	}
	v := Values{"references": float64(o.plan.References)}
	return v, v.timed("read", func() error { _, err := o.plan.MovesOf(o.source, 0); return err })
}

func plain(name string) (Values, error) {
	o, err := open(name, 0)
	if err != nil {
		return nil, err
	}
	v := Values{"references": float64(o.plan.References), "bytes": float64(o.bytes)}
	return v, v.timed("plain", func() error { _, err := o.plain(spec); return err })
}

// pack encodes a value that has no encoding of its own, as package pass does.
func pack(value any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(value)
	return packer.EncodeAll(b.Bytes(), nil), err
}

// wall measures the wall-clock time, for functions that wait for other processes.
func wall(do func() error) (float64, error) {
	begun := time.Now()
	err := do()
	return time.Since(begun).Seconds(), err
}
