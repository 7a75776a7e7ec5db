package sgt

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"sort"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// A step is one execution of a block.
type step struct {
	thread uint32
	ticket uint64
	block  uint32
	values []uint64
}

// naiveFile is a reference implementation that reads an intact container exactly as FORMAT.md
// describes.
func naiveFile(t failer, file []byte) (*trace.Program, []step) {
	t.Helper()
	program, all := &trace.Program{}, []step(nil)
	for len(file) > 0 {
		length := binary.LittleEndian.Uint32(file[4:])
		frame := file[8 : 8+length]
		file = file[8+length:]
		tag, body := string(frame[:4]), frame[4:len(frame)-4]
		switch tag {
		case "MODL":
			if err := ParseModule(body, program); err != nil {
				t.Fatalf("%v", err)
			}
		case "CHNK":
			var fields []uint64
			for len(body) > 0 {
				v, n := binary.Uvarint(body)
				fields, body = append(fields, v), body[n:]
			}
			content, err := io.ReadAll(lz4.NewReader(bytes.NewReader(file[:fields[9]])))
			if err != nil {
				t.Fatalf("%v", err)
			}
			file = file[fields[9]:]
			all = append(all, naiveChunk(t, program, fields, content)...)
		}
	}
	sort.SliceStable(all, func(i, j int) bool {
		a, b := all[i], all[j]
		return a.ticket < b.ticket || a.ticket == b.ticket && a.thread < b.thread
	})
	return program, all
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// naivePart reads numbers from one part of a chunk.
type naivePart []byte

func (p *naivePart) take() uint64 {
	v, n := prefixValue(*p)
	*p = (*p)[n:]
	return v
}

type naiveValue struct {
	last, stride, link uint64
	pick, sure         bool
}

func (v *naiveValue) predicted(previous uint64) uint64 {
	if v.pick {
		return previous + v.link
	}
	return v.last + v.stride
}

func naiveChunk(t failer, p *trace.Program, fields []uint64, content []byte) (all []step) {
	control := naivePart(content[:fields[6]])
	value := naivePart(content[fields[6] : fields[6]+fields[7]])
	tickets := naivePart(content[fields[6]+fields[7]:])
	next, other, values := map[uint32]uint32{}, map[uint32]uint32{}, map[[2]uint32]*naiveValue{}
	before, previous := uint32(0), uint64(0)
	follower := func(of map[uint32]uint32, b uint32) uint32 {
		if f, ok := of[b]; ok {
			return f
		}
		return b
	}
	one := func(block uint32, misses uint64) {
		s := step{thread: uint32(fields[0]), block: block}
		b, number := p.Blocks[block], uint32(0)
		for _, site := range p.Sites[b.FirstSite : b.FirstSite+b.Sites] {
			for k := range site.Values() {
				key := [2]uint32{block, number}
				if values[key] == nil {
					values[key] = &naiveValue{}
				}
				v := values[key]
				now := v.predicted(previous)
				if misses>>number&1 != 0 {
					d := naiveDifference(&value, naiveScale(site, k))
					now = v.last + d
					if !v.pick && now == previous+v.link {
						v.pick = true
					} else if v.pick && now == v.last+v.stride {
						v.pick = false
					}
					if v.sure {
						v.sure = false
					} else {
						v.stride = d
					}
					v.link = now - previous
				} else {
					v.sure = true
				}
				v.last, previous = now, now
				s.values = append(s.values, now)
				number++
			}
		}
		if was := follower(next, before); was != block {
			other[before], next[before] = was, block
		}
		before = block
		all = append(all, s)
	}
	for len(control) > 0 {
		token := control.take()
		run := token >> 2 & 3
		if run == 3 {
			run += control.take()
		}
		var off uint64
		if token&3 == 2 {
			off = control.take()
		}
		for range run {
			one(follower(next, before), 0)
		}
		block := follower(next, before)
		switch token & 3 {
		case 1:
			block = follower(other, before)
		case 2:
			block += uint32(off>>1 ^ -(off & 1))
		}
		one(block, token>>4)
	}
	ticket, at := fields[3], 0
	for len(tickets) > 0 {
		n := tickets.take()
		ticket += tickets.take()
		for range n {
			all[at].ticket = ticket
			at++
		}
	}
	if at != len(all) || len(all) != int(fields[1]) || ticket != fields[4] || len(value) > 0 {
		t.Fatalf("a chunk that states %d steps contains %d steps, %d of them with tickets up to %d, and %d additional bytes of values", fields[1], len(all), at, ticket, len(value))
	}
	return all
}

func naiveScale(s trace.Site, value int) int {
	if s.Kind > trace.Fetch || value > 0 {
		return 0
	}
	scale := 0
	for size := uint32(2); size <= min(s.Bytes, 8); size *= 2 {
		scale++
	}
	return scale
}

func naiveDifference(p *naivePart, scale int) uint64 {
	z := p.take()
	if scale == 0 {
		return z>>1 ^ -(z & 1)
	}
	d := (z>>2 ^ -(z >> 1 & 1)) << scale
	if z&1 != 0 {
		d |= p.take()
	}
	return d
}

type row struct {
	kind   trace.Kind
	addr   uint64
	bytes  uint32
	site   uint32
	arg    uint64
	pc     uint64
	thread uint32
}

// naiveRows returns the rows that the steps contain, but only rows of the given kinds.
func naiveRows(p *trace.Program, steps []step, kinds trace.Kinds) (all []row) {
	for _, s := range steps {
		add := func(r row) {
			if r.thread = s.thread; kinds.Has(r.kind) {
				all = append(all, r)
			}
		}
		b := p.Blocks[s.block]
		if b.Flags&trace.Synthetic == 0 {
			add(row{kind: trace.BlockEntry, site: s.block})
			sites := p.Sites[b.FirstSite : b.FirstSite+b.Sites]
			accesses := slices.ContainsFunc(sites, func(s trace.Site) bool {
				return s.Kind == trace.Load || s.Kind == trace.Store || s.Kind == trace.Modify
			})
			if !accesses && !kinds.Has(trace.BlockEntry) {
				add(row{kind: trace.BareBlock, site: s.block})
			}
		}
		if b.Flags&trace.EntryBlock != 0 {
			add(row{kind: trace.Call, site: s.block})
		}
		values := s.values
		for n := range b.Sites {
			site := p.Sites[b.FirstSite+n]
			r := row{kind: site.Kind, site: b.FirstSite + n, pc: site.PC, bytes: site.Bytes}
			v := append(slices.Clone(values[:site.Values()]), 0, 0)
			values = values[site.Values():]
			r.addr, r.arg = v[0], v[1]
			switch {
			case site.Kind.IsReference() && site.Values() == 2:
				for r.arg = 0; ; v[1] -= mostBytes {
					r.bytes = uint32(min(v[1], mostBytes))
					add(r)
					r.addr += uint64(r.bytes)
					if v[1] <= mostBytes {
						break
					}
				}
				continue
			case site.Kind.IsReference():
			case site.Kind == trace.Alloc && site.Values() == 1:
				r.arg, r.bytes = uint64(site.Bytes), 0
			case site.Kind == trace.LoopEnd && r.addr != 0:
				continue
			default:
				r.bytes = 0
			}
			add(r)
		}
		if b.Flags&trace.ReturnBlock != 0 {
			add(row{kind: trace.Return, site: s.block})
		}
	}
	return all
}
