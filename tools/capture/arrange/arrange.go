// Package arrange finishes the trace of a program that was not compiled for tracing.
//
// The recorder numbers the blocks of such a program in the order of their first execution, and
// describes the blocks in hundreds of small tables that contain addresses but no names. [Finish]
// makes a container with the blocks in the order of the code (file, function, address), so that the
// blocks of each module and of each function are adjacent. Finish also adds the names of functions,
// the source lines and the names of global variables. Package symbols reads these names and lines
// from the executable files, if the files still exist.
//
// Chunks are copied unchanged except for block numbers; see [sgt.Renumberer].
package arrange

import (
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/internal/symbols"
)

// Run contains the facts about a run that its recording lacks.
type Run struct {
	Program string       // path of the program's file
	Facts   []trace.Fact // facts that the trace lists before the facts in the recording
	// names of the code that the program generated while it ran; nil: unknown
	Generated *symbols.File
	// how the run ended; used if the recording lacks this fact because the recorder was killed
	End    sgt.End
	Status uint64 // exit status
}

// Summary describes a finished trace.
type Summary struct {
	References uint64
	Threads    int
	Sites      int
	Named      int // number of sites with a known source line
	End        sgt.End
}

// Finish reads a recording of the given size in bytes and writes the finished trace to out. The
// function openSymbols reads the symbols of a program or library; it is [symbols.Open] except in
// tests.
func Finish(out io.Writer, recorded io.ReaderAt, size int64, run Run, openSymbols func(string) (*symbols.File, error)) (Summary, error) {
	r, err := sgt.ReadRecording(recorded, size)
	if err != nil {
		return Summary{}, err
	}
	end := run.End
	if r.Ending.Known {
		end = r.Ending.End
	}
	end.Status = run.Status
	program := r.Header.Program
	a := arrange(program, &run, openSymbols)
	s := Summary{End: end}
	w := sgt.NewWriter(out, 64, append(run.Facts, r.Header.Capture...))
	for i, p := range a.buildModules() {
		s.count(p)
		if err := w.Module(sgt.AppendModule(nil, p)); err != nil {
			return s, err
		}
		var addrs []trace.Addr
		for _, o := range p.Objects {
			addrs = append(addrs, o.Addr)
		}
		if addrs != nil {
			w.Objects(uint32(i), addrs)
		}
	}
	for _, t := range program.Threads {
		w.Thread(t)
	}
	if err := s.copyChunks(w, recorded, r.Chunks, a.number); err != nil {
		return s, err
	}
	return s, w.Close(end)
}

func (s *Summary) count(p *trace.Program) {
	for i := range p.Sites {
		if p.Sites[i].Kind.IsReference() {
			s.Sites++
			if p.Sites[i].Place.Line > 0 {
				s.Named++
			}
		}
	}
}

func (s *Summary) copyChunks(w *sgt.Writer, recorded io.ReaderAt, chunks []sgt.RecordedChunk, number []uint32) error {
	n, threads := sgt.NewRenumberer(number), map[uint32]bool{}
	for i := range chunks {
		c := &chunks[i]
		frame, err := n.Chunk(recorded, c)
		if err != nil {
			return &ChunkError{Chunk: i, Offset: c.Offset, Err: err}
		}
		w.CopyChunk(&c.ChunkHead, frame)
		s.References += c.References
		threads[c.Thread] = true
	}
	s.Threads = len(threads)
	return nil
}

// ChunkError means that a chunk of a recording cannot be read.
type ChunkError struct {
	Chunk  int
	Offset int64
	Err    error
}

func (e *ChunkError) Error() string {
	return "chunk " + strconv.Itoa(e.Chunk) + " of the recording, at byte " + strconv.FormatInt(e.Offset, 10) + ": " + e.Err.Error()
}

func (e *ChunkError) Unwrap() error { return e.Err }
