// Package arrange finishes the trace of a program that was not compiled for it.
//
// Whoever records such a program meets its instructions as they come: blocks are
// numbered in the order of their first execution, and told of in hundreds of
// small tables that have addresses and no names. [Finish] makes a container of it
// in which the blocks stand in the order of the code (file, function, address),
// so that a module's and a function's are together, and functions, source lines
// and global variables have their names, by package symbols, as far as the files
// can still be read.
//
// Chunks are copied but for the numbers of blocks in them; see renumberer.
package arrange

import (
	"encoding/binary"
	"io"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/internal/symbols"
)

// Run is what is known of a run besides its recording.
type Run struct {
	Program string       // path of the program's file
	Facts   []trace.Fact // put before those of the recording
	// End is how the run ended if the recording does not say so, because whoever
	// made it was killed.
	End sgt.End
	// Status is what the process exited with.
	Status uint64
}

// Summary is what a finished trace has.
type Summary struct {
	References uint64
	Threads    int
	Sites      int
	Named      int // sites whose line of source is known
	End        sgt.End
}

// Finish reads the recording, size bytes of it, and writes the trace. Open opens a
// file of code; it is [symbols.Open] but for tests.
func Finish(out io.Writer, recorded io.ReaderAt, size int64, run Run, open func(string) (*symbols.File, error)) (Summary, error) {
	r, err := read(recorded, size)
	if err != nil {
		return Summary{}, err
	}
	if r.end == nil {
		r.end = &run.End
	}
	r.end.Status = run.Status
	a := arrange(&r.program, run.Program, open)
	s := Summary{End: *r.end, Threads: r.countThreads()}
	w := &writer{out: out}
	w.table("SGT.", fileBody(append(run.Facts, r.facts...)))
	for i, p := range a.modules() {
		s.count(p)
		w.table("MODL", sgt.AppendModule(nil, p))
		if len(p.Objects) > 0 {
			w.table("OBJS", objectsBody(uint64(i), p.Objects))
		}
	}
	for _, body := range r.threads {
		w.table("THRD", body)
	}
	if err := copyChunks(w, r, a.number); err != nil {
		return s, err
	}
	s.References = w.references
	return s, w.close(*r.end)
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

func fileBody(facts []trace.Fact) []byte {
	const pointerBits = 64
	body := binary.AppendUvarint(nil, sgt.Version)
	body = binary.AppendUvarint(body, sgt.Version)
	body = binary.AppendUvarint(body, pointerBits)
	body = binary.AppendUvarint(body, uint64(len(facts)))
	for _, f := range facts {
		body = appendText(appendText(body, f.Name), f.Value)
	}
	return body
}

func objectsBody(module uint64, objects []trace.Object) []byte {
	body := binary.AppendUvarint(nil, module)
	body = binary.AppendUvarint(body, uint64(len(objects)))
	for _, o := range objects {
		body = binary.AppendUvarint(body, o.Addr)
	}
	return body
}

func copyChunks(w *writer, r *recording, number []uint32) error {
	n := newRenumberer(number)
	for i, c := range r.chunks {
		d, frame, err := n.chunk(r.file, c)
		if err != nil {
			return &ChunkError{Chunk: i, Offset: c.offset, Err: err}
		}
		w.chunk(d, frame)
	}
	return w.err
}

// ChunkError tells that a chunk of a recording cannot be read.
type ChunkError struct {
	Chunk  int
	Offset int64
	Err    error
}

func (e *ChunkError) Error() string {
	return "chunk " + strconv.Itoa(e.Chunk) + " of the recording, at byte " + strconv.FormatInt(e.Offset, 10) + ": " + e.Err.Error()
}

func (e *ChunkError) Unwrap() error { return e.Err }
