// Package scale models how well package pass scales: for a trace with a given number of references
// and lines, and a number of workers, it predicts the time, the data that the workers exchange, and
// their memory (MODELS §9). SCALE.md, which cmd writes, contains the results.
//
// Like the pipeline, the model has steps, each of which begins when the previous step has ended:
//
//  1. Every worker reads the index. If data structures are distinguished by memory block, the
//     allocations of each stretch are read, and one worker computes which blocks exist before each
//     stretch.
//  2. Each stretch is analysed by one worker. The state of a segment of s references consists of
//     u(s) = min(footprint, distinct lines per reference · s) lines, and as many first touches. A
//     segment that reaches MostLines ends, and another one begins.
//  3. On each level of the tree, a node decodes its parts, appends them one after the other, and
//     encodes the result. The state of a node that covers s references has u(s) lines, like the
//     state of a segment, so it does not grow beyond the footprint.
//  4. One worker joins the remaining segments, and appends the result to the references before the
//     first stretch.
//
// A step of n equal tasks takes ⌈n / workers⌉ times as long as one task. Package measure measures
// the cost of a line for a few numbers of lines. In between, the cost is interpolated over the
// logarithm of the number; beyond the largest number, it is constant.
package scale

import (
	"math"

	"github.com/stackglass/stackglass/tools/beam/pass"
)

// Point is the cost for a number of lines.
type Point struct {
	Lines float64
	Cost  float64
}

// Curve lists costs in ascending order of the number of lines.
type Curve []Point

// At returns the cost for a number of lines. The curve has at least one point.
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

// Costs are the costs of a pattern of accesses on one processor, in seconds unless bytes are
// mentioned.
type Costs struct {
	PerReference float64 // distinct lines per reference, until the footprint is reached
	Analyse      Curve   // per reference of a segment
	Plain        Curve   // per reference in an undivided pass
	Encode       Curve   // per line of a state, including compression
	Decode       Curve   // per line of a state
	Join         Curve   // per line of each part of a join
	Bytes        Curve   // bytes sent per line
	SegmentBytes Curve   // bytes of memory per line, in a worker that analyses a segment
	JoinBytes    Curve   // bytes of memory per line of the parts and of the result, in a worker that joins
	TraceBytes   float64 // bytes per reference in the file
}

// Fixed are costs that do not depend on the pattern.
type Fixed struct {
	Job        float64 // seconds of an empty job, on one processor
	Segment    float64 // seconds to read and encode a segment of a few references
	Join       float64 // seconds per part to join such segments
	Chunk      float64 // seconds to read a chunk of the index
	Read       float64 // seconds per reference to read the allocations
	Block      float64 // seconds to encode a memory block of a layout
	BlockBytes float64 // bytes sent per memory block
	Network    float64 // bytes per second to and from a worker; assumed, not measured
}

// Job is a run to analyse, and how it is divided.
type Job struct {
	References float64
	Footprint  float64 // lines
	Workers    float64
	Stretch    float64 // references
	MostLines  float64 // limit for a segment; 0: none
	FanIn      float64
	Blocks     float64 // memory blocks that exist at the same time; 0: memory blocks are not distinguished
}

// Of returns a job with the pipeline's defaults.
func Of(references, footprint, workers float64) Job {
	return Job{References: references, Footprint: footprint, Workers: workers, Stretch: pass.MostReferences, MostLines: pass.DefaultMostLines, FanIn: pass.DefaultFanIn}
}

// Level is a level of the tree.
type Level struct {
	Nodes    float64
	Parts    float64 // parts of a node
	In, Out  float64 // lines of a part, and of the result
	Seconds  float64 // duration of the step
	OfAll    float64 // seconds of all nodes
	SentInto float64 // bytes of all parts of all nodes
}

// Estimate contains the predicted times and sizes of a job.
type Estimate struct {
	Plain     float64 // seconds of an undivided pass on one processor
	Stretches float64
	Segments  float64
	Lines     float64 // lines of a segment
	Levels    []Level // the last level is the root

	// Durations of the steps in seconds, and their sum.
	Begin, Analyse, Join, Finish, Total float64
	Work                                float64 // seconds of all workers

	Sent          float64 // bytes of all states
	RootBytes     float64 // bytes of the largest state
	SegmentMemory float64 // bytes of memory in a worker that analyses a segment
	RootMemory    float64 // bytes of memory in the worker that joins the last parts
	Fits          bool    // a stack can contain all lines
}

const (
	headReferences = 1 << 17       // before the first stretch; see package core/analysis
	mostLines      = 1<<32 - 1<<17 // see package core/stack
	chunkBytes     = 1 << 20       // a chunk of a container ends after this number of bytes,
	chunkSteps     = 1 << 22       // or after this number of references
)

// ChunkReferences returns the number of references in a chunk of a trace.
func ChunkReferences(c *Costs) float64 { return min(chunkSteps, chunkBytes/c.TraceBytes) }

// turns returns how many of n equal tasks one worker performs, one after the other.
func turns(n float64, j *Job) float64 { return max(1, math.Ceil(n/j.Workers)) }

// lines returns the number of lines in the state of a number of references.
func (c *Costs) lines(j *Job, references float64) float64 {
	return max(1, min(j.Footprint, c.PerReference*references))
}

// Predict estimates the times and sizes of a job.
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

	// All segments of a stretch are analysed by one worker.
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

	// On the first level of the tree, the parts are all segments of each stretch.
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
	// Finishing analyses the references before the first stretch, decodes the root, appends it, and
	// writes the profile.
	e.Finish = headReferences*c.Plain.At(e.Lines) + in*(c.Decode.At(in)+c.Join.At(in))
	e.Work += e.Finish
	e.Total = e.Begin + e.Analyse + e.Join + e.Finish
	e.Fits = min(j.Footprint, in) <= mostLines
	return e
}

// node returns the duration of one join of a level.
func (c *Costs) node(l *Level, f *Fixed) float64 {
	parts := l.Parts * l.In
	return l.Parts*f.Join + parts*(c.Decode.At(l.In)+c.Join.At(l.Out)) +
		l.Out*c.Encode.At(l.Out) + c.send(f, parts, l.In) + c.send(f, l.Out, l.Out)
}

// send returns the time needed to send a number of lines of states with a certain size.
func (c *Costs) send(f *Fixed, lines, of float64) float64 {
	if f.Network == 0 {
		return 0
	}
	return lines * c.Bytes.At(of) / f.Network
}

// Speedup returns the speed-up over an undivided pass on one processor.
func (e *Estimate) Speedup() float64 { return e.Plain / e.Total }

// mostWorkers is the largest number of workers that Half considers.
const mostWorkers = 1 << 20

// Half returns where a job stops scaling: the largest number of workers, a power of two, up to
// which each doubling speeds up the job by a factor of at least 1.5. It returns 1 if no doubling
// does.
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

// Serial predicts a job with an unlimited number of workers.
func Serial(j Job, c *Costs, f *Fixed) Estimate {
	j.Workers = math.Inf(1)
	return Predict(j, c, f)
}

// Sampled returns the job and the costs for a sample of the lines. All references are read, but
// only references to the sampled share of the lines are analysed. read is the cost in seconds of a
// reference that is not analysed.
func Sampled(j Job, c *Costs, share, read float64) (Job, *Costs) {
	j.Footprint *= share
	some := *c
	some.PerReference *= share
	some.Analyse, some.Plain = of(c.Analyse, share, read), of(c.Plain, share, read)
	return j, &some
}

// of returns the costs of a sample, by the number of sampled lines.
func of(c Curve, share, read float64) (some Curve) {
	for _, p := range c {
		some = append(some, Point{p.Lines, read + share*p.Cost})
	}
	return some
}
