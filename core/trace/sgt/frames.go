package sgt

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Frames reads the frames of a file that contains the tables of a program, but no steps, such as a
// loop-compressed trace.
type Frames struct {
	feed feed
	told metadata
}

// NewFrames returns a reader of the frames of r.
func NewFrames(r io.Reader) *Frames { return &Frames{feed: feed{r: r}} }

// Frame is a frame with a correct checksum.
type Frame struct {
	Tag  string
	At   uint64 // offset in the file
	Body []byte // valid until the next call to Next
}

// Next returns the next frame that contains neither tables of the program nor facts about the
// capture. Next also processes the frames before this frame. Next returns io.EOF at the end of the
// file, and [io.ErrUnexpectedEOF] if the file was truncated. All errors are final.
func (f *Frames) Next() (Frame, error) {
	for {
		next, err := f.feed.next()
		switch {
		case err != nil:
			return Frame{}, err
		case !isTable(next.tag):
			return Frame{Tag: next.tag, At: next.at, Body: next.body}, nil
		}
		if err := f.told.takeFrame(next); err != nil {
			return Frame{}, err
		}
	}
}

func isTable(tag string) bool {
	return tag == tagCapture || tag == tagModule || tag == tagObjects || tag == tagThread || tag == tagTags || tag == tagDone
}

// BeginsWith reports whether a file begins with a frame that has the given tag.
func BeginsWith(head []byte, tag string) bool {
	return len(head) >= frameHead+len(tag) && binary.LittleEndian.Uint32(head) == magicFrame && string(head[frameHead:frameHead+len(tag)]) == tag
}

// At returns the number of bytes read.
func (f *Frames) At() uint64 { return f.feed.at }

// Header returns the program, if the file describes one, and the facts that have been read so far.
func (f *Frames) Header() (h trace.Header) {
	c := f.told.clone()
	if p := &c.program; len(p.Modules)+len(p.Threads)+len(p.Tags) > 0 {
		h.Program = p
	}
	h.Capture = c.facts
	return h
}

// Ending describes how the run ended. Call Ending after all frames have been read.
func (f *Frames) Ending() Ending { return f.told.ending }

// Tables writes the contents of successive headers as frames. Each item is written only once.
type Tables struct {
	modules, functions, blocks, sites, objects, tags, facts int // how many modules, functions and other items have been written

	moduleOf []int // first object of each module
	addrs    []trace.Addr
	threads  []trace.Thread
}

// Append appends frames for the new parts of a header, which must contain everything that the
// previous header contained. Append omits a program whose sites are not in the order of its blocks,
// or in which a block has more than [MaxValues] values, because tables cannot describe such
// programs.
func (t *Tables) Append(dst []byte, h trace.Header) []byte {
	_ = t.writeFrames(h, h.Program != nil && inOrder(h.Program), func(tag string, body []byte) error {
		dst = AppendFrame(dst, tag, body)
		return nil
	})
	return dst
}

// writeFrames calls the function "put" with the tag and the body of each frame that is needed to
// describe the new parts of a header. If the parameter "ordered" is false, modules are omitted,
// because tables require that the sites are in the order of the blocks.
func (t *Tables) writeFrames(h trace.Header, ordered bool, put func(tag string, body []byte) error) error {
	var err error
	add := func(tag string, body []byte) {
		if err == nil {
			err = put(tag, body)
		}
	}
	if len(h.Capture) > t.facts {
		add(tagCapture, appendFacts(nil, h.Capture[t.facts:]))
		t.facts = len(h.Capture)
	}
	p := h.Program
	if p == nil {
		return err
	}
	for ordered && (t.modules < len(p.Modules) || t.blocks < len(p.Blocks) || t.functions < len(p.Functions)) {
		add(tagModule, AppendModule(nil, t.nextModule(p)))
	}
	t.writeObjects(p, add)
	for _, th := range p.Threads {
		if i := slices.IndexFunc(t.threads, func(old trace.Thread) bool { return old.Number == th.Number }); i < 0 {
			t.threads = append(t.threads, th)
		} else if t.threads[i] == th {
			continue
		} else {
			t.threads[i] = th
		}
		add(tagThread, appendThread(nil, th))
	}
	if len(p.Tags) > t.tags {
		add(tagTags, appendTags(nil, t.tags, p.Tags[t.tags:]))
		t.tags = len(p.Tags)
	}
	return err
}

// inOrder reports whether the sites are in the order of the blocks, so that tables can describe the
// program.
func inOrder(p *trace.Program) bool {
	next := uint32(0)
	for i := range p.Blocks {
		b, values := &p.Blocks[i], 0
		if b.FirstSite != next || int(b.Sites) > len(p.Sites)-int(next) {
			return false
		}
		next += b.Sites
		for j := range b.Sites {
			values += p.Sites[b.FirstSite+j].Values()
		}
		if values > MaxValues {
			return false
		}
	}
	return int(next) == len(p.Sites)
}

// nextModule returns the next new module as a program. nextModule assigns a block without a
// function, whose module is unknown, to the module of the block before it.
func (t *Tables) nextModule(p *trace.Program) *trace.Program {
	part := &trace.Program{Modules: make([]trace.Module, 1)}
	functions, blocks, objects := len(p.Functions), len(p.Blocks), len(p.Objects)
	if t.modules < len(p.Modules) {
		part.Modules[0] = p.Modules[t.modules]
	}
	if t.modules+1 < len(p.Modules) {
		functions, blocks = t.moduleEnd(p)
	}
	for _, f := range p.Functions[t.functions:functions] {
		f.First -= uint32(t.blocks)
		part.Functions = append(part.Functions, f)
	}
	for _, b := range p.Blocks[t.blocks:blocks] {
		b.FirstSite -= uint32(t.sites)
		if b.Function != trace.NoFunction {
			b.Function -= uint32(t.functions)
		}
		if b.Loop > 0 {
			b.Loop -= uint32(t.blocks)
		}
		b.Successors = slices.Clone(b.Successors)
		for i := range b.Successors {
			b.Successors[i] -= uint32(t.blocks)
		}
		part.Blocks = append(part.Blocks, b)
	}
	sites := t.sites
	for i := range part.Blocks {
		sites += int(part.Blocks[i].Sites)
	}
	part.Sites, part.Objects = p.Sites[t.sites:sites], p.Objects[t.objects:objects]
	ownStructures(part, p.Structures)
	t.moduleOf = append(t.moduleOf, t.objects)
	t.modules++
	t.functions, t.blocks, t.sites, t.objects = functions, blocks, sites, objects
	return part
}

// ownStructures adds to a module copies of the structures that the module's sites and objects use.
// The parameter "all" contains the structures of the whole program.
func ownStructures(part *trace.Program, all []trace.Structure) {
	if len(all) == 0 {
		return
	}
	part.Sites, part.Objects = slices.Clone(part.Sites), slices.Clone(part.Objects)
	numbers := make([]uint32, len(all)+1)
	own := func(structure *uint32) {
		if *structure > uint32(len(all)) {
			*structure = 0
		}
		if n := *structure; n != 0 && numbers[n] == 0 {
			part.Structures = append(part.Structures, all[n-1])
			numbers[n] = uint32(len(part.Structures))
		}
		*structure = numbers[*structure]
	}
	for i := range part.Sites {
		own(&part.Sites[i].Structure)
	}
	for i := range part.Objects {
		own(&part.Objects[i].Structure)
	}
}

// moduleEnd returns the indices after the last function and the last block of the next module. The
// next module must not be the last module of the program. If the module's blocks refer to blocks of
// a later module, moduleEnd returns the total numbers of functions and blocks.
func (t *Tables) moduleEnd(p *trace.Program) (functions, blocks int) {
	functions = t.functions
	for functions < len(p.Functions) && p.Functions[functions].Module <= uint32(t.modules) {
		functions++
	}
	if functions == len(p.Functions) {
		return functions, len(p.Blocks)
	}
	blocks = int(p.Functions[functions].First)
	if blocks < t.blocks || blocks > len(p.Blocks) || !t.canSplit(p, functions, blocks) {
		return len(p.Functions), len(p.Blocks)
	}
	return functions, blocks
}

// canSplit reports whether a module can end before the given function and block. This requires that
// no function or block before this position refers to a function or block after it, or vice versa.
func (t *Tables) canSplit(p *trace.Program, functions, blocks int) bool {
	for i := t.functions; i < len(p.Functions); i++ {
		f := &p.Functions[i]
		if i >= functions && int(f.First) < blocks || i < functions && int(f.First+f.Blocks) > blocks {
			return false
		}
	}
	for i := t.blocks; i < len(p.Blocks); i++ {
		b, here := &p.Blocks[i], i < blocks
		if b.Function != trace.NoFunction && (int(b.Function) < functions) != here || b.Loop > 0 && (int(b.Loop-1) < blocks) != here {
			return false
		}
		for _, next := range b.Successors {
			if (int(next) < blocks) != here {
				return false
			}
		}
	}
	return true
}

// writeObjects writes the addresses of a module's objects if at least one of these addresses is new
// or has changed.
func (t *Tables) writeObjects(p *trace.Program, add func(tag string, body []byte)) {
	for module, first := range t.moduleOf {
		end := t.objects
		if module+1 < len(t.moduleOf) {
			end = t.moduleOf[module+1]
		}
		t.addrs = append(t.addrs, make([]trace.Addr, max(0, end-len(t.addrs)))...)
		changed := false
		for i := first; i < end; i++ {
			changed = changed || t.addrs[i] != p.Objects[i].Addr
			t.addrs[i] = p.Objects[i].Addr
		}
		if changed {
			add(tagObjects, appendObjects(nil, uint32(module), t.addrs[first:end]))
		}
	}
}

// AppendDone appends the DONE frame.
func AppendDone(dst []byte, e End, references uint64) []byte {
	body := appendStr(nil, e.How)
	for _, v := range [...]uint64{e.Status, references, e.Lost} {
		body = binary.AppendUvarint(body, v)
	}
	return AppendFrame(dst, tagDone, body)
}
