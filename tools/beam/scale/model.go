// Package scale is a model of how far package pass scales: how long a trace of so many
// references to so many lines takes on so many workers, what they send each other, and
// how much memory they need (MODELS §9). SCALE.md, which cmd writes, has what comes of it.
//
// Like the pipeline, it goes in steps, each of which waits for the one before:
//
//  1. Every worker reads the index. Where blocks of memory matter, stretches are read for
//     what they tell of them, and one worker lays out where they lie before each stretch.
//  2. Stretches are analysed, each by one worker. A segment of s references has
//     u = min(footprint, distinct lines per reference · s) lines, and as many first
//     touches: its state. One that comes to MostLines is ended, and another begun.
//  3. On each level of the tree a node decodes its parts, appends them one after the other,
//     and encodes what comes of it. The state of a node that covers s references has
//     u(s) lines, as that of a segment: it stops to grow at the footprint.
//  4. One worker joins the last ones, and appends the result to what comes first.
//
// A step of n equal tasks takes ⌈n / workers⌉ times one. What a line costs is measured, by
// package measure, at a few numbers of lines, and taken in between by the logarithm of
// their number; beyond the largest one it stays as there.
package scale

import (
	"math"

	"github.com/stackglass/stackglass/tools/beam/pass"
)

// Point is a cost where so many lines are in use.
type Point struct {
	Lines float64
	Cost  float64
}

// Curve is a cost by the number of lines, ascending.
type Curve []Point

// At is the cost at so many lines. The curve has a point.
func (c Curve) At(lines float64) float64 {
	if lines <= c[0].Lines {
		return c[0].Cost
	}
	for i, p := range c[1:] {
		if lines <= p.Lines {
			from := c[i]
			share := math.Log(lines/from.Lines) / math.Log(p.Lines/from.Lines)
			return from.Cost + share*(p.Cost-from.Cost)
		}
	}
	return c[len(c)-1].Cost
}

// Costs are what a pattern of accesses costs one processor, in seconds but for those that
// say bytes.
type Costs struct {
	PerReference float64 // distinct lines for each, until the footprint is reached
	Analyse      Curve   // a reference of a segment
	Plain        Curve   // a reference in a pass that is not divided
	Encode       Curve   // a line of a state, compressed
	Decode       Curve   // a line of a state
	Join         Curve   // a line of each part of a join
	Bytes        Curve   // bytes of a line that is sent
	SegmentBytes Curve   // bytes of memory for a line of a worker that makes a segment
	JoinBytes    Curve   // and of one that joins, for a line of each part and of the result
	TraceBytes   float64 // bytes of a reference in the file
}

// Fixed are costs that hang on no pattern.
type Fixed struct {
	Job        float64 // seconds that a job takes with nothing to do, on one processor
	Segment    float64 // seconds of a segment of a few references, read and encoded
	Join       float64 // seconds of a part of a join of such
	Chunk      float64 // seconds to read a chunk of the index
	Read       float64 // seconds to read a reference for what it tells of blocks
	Block      float64 // seconds to encode a block of memory of a layout
	BlockBytes float64 // bytes of it that are sent
	Network    float64 // bytes a second to and from a worker: not measured
}

// Job is a run to analyse, and how it is divided.
type Job struct {
	References float64
	Footprint  float64 // lines
	Workers    float64
	Stretch    float64 // references
	MostLines  float64 // of a segment; 0: any number
	FanIn      float64
	Blocks     float64 // of memory that live at a time, where sites are told apart; 0: that does not matter
}

// Of is a job with the pipeline's defaults.
func Of(references, footprint, workers float64) Job {
	return Job{References: references, Footprint: footprint, Workers: workers, Stretch: pass.DefaultReferences, MostLines: pass.DefaultMostLines, FanIn: pass.DefaultFanIn}
}

// Level is a step of the tree.
type Level struct {
	Nodes    float64
	Parts    float64 // of a node
	In, Out  float64 // lines of a part, and of what comes of it
	Seconds  float64 // of the step
	OfAll    float64 // seconds of all nodes
	SentInto float64 // bytes of all parts
}

// Estimate is what a job takes.
type Estimate struct {
	Plain     float64 // seconds of one processor that divides nothing
	Stretches float64
	Segments  float64
	Lines     float64 // of a segment
	Levels    []Level // the last one is the root's

	// Seconds of the steps, of which Total is the sum.
	Begin, Analyse, Join, Finish, Total float64
	Work                                float64 // seconds of all workers

	Sent          float64 // bytes of all states
	RootBytes     float64 // of the largest one
	SegmentMemory float64 // bytes of a worker that makes a segment
	RootMemory    float64 // and of the one that joins the last parts
	Fits          Limit
}

// Limit is what forbids a job; "" is nothing.
type Limit string

// The limits.
const (
	MessageLimit Limit = "message" // a state is larger than a message may be
	LinesLimit   Limit = "lines"   // a stack takes no more lines
)

const (
	headReferences = 1 << 17       // in front of the first stretch, of package core/analysis
	MostMessage    = 2e9           // bytes, of package pass
	mostLines      = 1<<32 - 1<<17 // of package core/stack
	chunkBytes     = 1 << 20       // of a container, or
	chunkSteps     = 1 << 22       // references, whichever comes first
)

// ChunkReferences is how many references a chunk of a trace has.
func ChunkReferences(c *Costs) float64 { return min(chunkSteps, chunkBytes/c.TraceBytes) }

// turns is how many of n equal tasks one worker has, one after the other.
func turns(n float64, j *Job) float64 { return max(1, math.Ceil(n/j.Workers)) }

// lines is the size of the state of so many references.
func (c *Costs) lines(j *Job, references float64) float64 {
	return max(1, min(j.Footprint, c.PerReference*references))
}

// Predict gives what a job takes.
func Predict(j Job, c *Costs, f *Fixed) Estimate {
	stretch := min(max(j.Stretch, j.References/pass.MostStretches), j.References)
	e := Estimate{Stretches: math.Ceil(j.References / stretch), Plain: j.References * c.Plain.At(j.Footprint)}

	e.Begin = f.Job + f.Chunk*j.References/ChunkReferences(c)
	blocks := 0.0
	if j.Blocks > 0 {
		blocks = e.Stretches * j.Blocks * f.Block
		e.Begin += turns(e.Stretches, &j)*stretch*f.Read + blocks
		e.Sent += e.Stretches * j.Blocks * f.BlockBytes
	}

	// Segments: those of a stretch are made by one worker.
	each := 1.0
	e.Lines = c.lines(&j, stretch)
	if j.MostLines > 0 && j.MostLines < e.Lines {
		each, e.Lines = math.Ceil(e.Lines/j.MostLines), j.MostLines
		if perStretch := c.PerReference * stretch; j.MostLines < j.Footprint {
			each = math.Ceil(perStretch / j.MostLines)
		}
	}
	e.Segments = e.Stretches * each
	one := stretch*c.Analyse.At(e.Lines) + each*(f.Segment+e.Lines*c.Encode.At(e.Lines)) + c.send(f, each*e.Lines, e.Lines)
	e.Analyse = turns(e.Stretches, &j) * one
	e.SegmentMemory = e.Lines * c.SegmentBytes.At(e.Lines)
	e.RootBytes = e.Lines * c.Bytes.At(e.Lines)
	e.Work = e.Begin + e.Stretches*one
	if j.Blocks > 0 {
		e.Work += e.Stretches * stretch * f.Read
	}

	// The tree: the first level has all segments of each stretch among its parts.
	nodes, in, references := e.Stretches, e.Lines, stretch
	for first := true; nodes > 1 || first && each > 1; first = false {
		l := Level{Nodes: math.Ceil(nodes / j.FanIn), Parts: min(nodes, j.FanIn), In: in}
		references = min(j.References, references*l.Parts)
		l.Out = c.lines(&j, references)
		parts := nodes // of all nodes
		if first {
			l.Parts *= each
			parts *= each
		}
		l.SentInto = parts * in * c.Bytes.At(in)
		once := c.node(&l, f)
		l.Seconds = turns(l.Nodes, &j) * once
		l.OfAll = l.Nodes * once
		e.Join += l.Seconds
		e.Work += l.OfAll
		e.Sent += l.SentInto
		e.RootBytes = max(e.RootBytes, l.Out*c.Bytes.At(l.Out))
		e.RootMemory = (l.Out + l.Parts*l.In) * c.JoinBytes.At(l.Out)
		e.Levels = append(e.Levels, l)
		nodes, in = l.Nodes, l.Out
	}
	if len(e.Levels) == 0 {
		e.Sent += in * c.Bytes.At(in)
		e.RootMemory = 2 * in * c.JoinBytes.At(in)
	}
	// Finishing analyses what comes before the first stretch, takes the root apart,
	// appends it, and writes the profile.
	e.Finish = headReferences*c.Plain.At(e.Lines) + in*(c.Decode.At(in)+c.Join.At(in))
	e.Work += e.Finish
	e.Total = e.Begin + e.Analyse + e.Join + e.Finish
	switch {
	case min(j.Footprint, in) > mostLines:
		e.Fits = LinesLimit
	case e.RootBytes > MostMessage:
		e.Fits = MessageLimit
	}
	return e
}

// node is how long one join of a level takes.
func (c *Costs) node(l *Level, f *Fixed) float64 {
	parts := l.Parts * l.In
	return l.Parts*f.Join + parts*(c.Decode.At(l.In)+c.Join.At(l.Out)) +
		l.Out*c.Encode.At(l.Out) + c.send(f, parts, l.In) + c.send(f, l.Out, l.Out)
}

// send is how long it takes to send so many lines of states of some size.
func (c *Costs) send(f *Fixed, lines, of float64) float64 {
	if f.Network == 0 {
		return 0
	}
	return lines * c.Bytes.At(of) / f.Network
}

// Speedup is how much sooner a job is done than on one processor that divides nothing.
func (e *Estimate) Speedup() float64 { return e.Plain / e.Total }

// mostWorkers are looked at.
const mostWorkers = 1 << 20

// Half is the number of workers, a power of two, up to which doubling them makes a job
// faster by at least a half: where it stops to scale. 1 is nowhere.
func Half(j Job, c *Costs, f *Fixed) float64 {
	at := 1.0
	for workers := 1.0; workers < mostWorkers; workers *= 2 {
		a, b := j, j
		a.Workers, b.Workers = workers, 2*workers
		before, after := Predict(a, c, f), Predict(b, c, f)
		if before.Total < 1.5*after.Total {
			break
		}
		at = 2 * workers
	}
	return at
}

// Serial is how long a job takes on any number of workers.
func Serial(j Job, c *Costs, f *Fixed) Estimate {
	j.Workers = math.Inf(1)
	return Predict(j, c, f)
}

// Sampled is the job of a sample of the lines: all references are read, and those to the
// share that is kept are analysed. read is the seconds that a reference takes which is not.
func Sampled(j Job, c *Costs, share, read float64) (Job, *Costs) {
	j.Footprint *= share
	some := *c
	some.PerReference *= share
	some.Analyse, some.Plain = of(c.Analyse, share, read), of(c.Plain, share, read)
	return j, &some
}

// of is the cost by the number of lines that are kept.
func of(c Curve, share, read float64) (some Curve) {
	for _, p := range c {
		some = append(some, Point{p.Lines, read + share*p.Cost})
	}
	return some
}
