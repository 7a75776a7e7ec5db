package stack

import "math/bits"

// recency answers, for each number of sets from 2^1 on, how many lines of a set
// fell off the top array since a given fall, up to MaxWays. A set is the list of
// its last lines to fall: only the numbers of their falls, newest first.
//
// When a line falls again, it moves to the front of its list, unless it is there:
// then nothing changes, neither here nor with more sets, because whoever shares a
// set with it there shares one here too. So an entry may be older than its line's
// last fall. The lists are in order of the last falls all the same, and the number
// of entries newer than the last fall of x is the depth of x: a line that fell
// after x was not in front of x's set then, so it has moved since. For the same
// reason x's own entry is the first one that is not newer.
//
// A batch of visits goes through the lists of one number of sets, and what is not
// in front goes on to the next: the lists in use stay in the cache, and the loads
// of one visit do not wait for those of another.
type recency struct {
	visits  [visitRoom]visit
	pending int
	done    [visitRoom]uint64 // depths of visits that went no further

	logs   [setBits + 1][]history         // by number of sets, of the few sets
	lists  [setBits + 1][][MaxWays]uint32 // of the others
	depths [setBits + 1][256]uint64
}

// visit asks how many lines of a set are newer than a line, or moves it to the
// front.
type visit struct {
	after uint32 // entries from this on are newer than the line; 0: it never fell
	now   uint32 // the fall that moves it
	set   uint32 // the line's last bits
	moves uint32 // 1, or 0: it counts
	above uint64 // lines of the top array to count too, in lanes
}

const (
	visitRoom = 1024
	fewSets   = 8   // up to 2^8 sets are histories
	moved     = 128 // where depths that are not counted go
)

// history is a list as a log: moving a line sets a bit and clears one.
type history struct {
	live    uint64                  // bit i: entries[i] is a line's newest
	used    uint32                  // entries, from the end
	entries [historyRoom + 1]uint32 // complements, so that unused ones are newer than all; the last is unused
}

const historyRoom = 63

func (r *recency) reset() {
	r.pending = 0
	for a := 1; a <= setBits; a++ {
		if a <= fewSets {
			r.logs[a] = make([]history, 1<<a)
		} else {
			r.lists[a] = make([][MaxWays]uint32, 1<<a)
		}
	}
}

func (r *recency) move(line uint64, after, now uint32) {
	r.add(visit{after: after, now: now, set: uint32(line), moves: 1})
}

func (r *recency) count(line uint64, after uint32, above uint64) {
	r.add(visit{after: after, now: ^uint32(0), set: uint32(line), above: above})
}

func (r *recency) add(v visit) {
	r.visits[r.pending&(visitRoom-1)] = v
	if r.pending++; r.pending == visitRoom {
		r.settle()
	}
}

// settle takes the pending visits through all lists.
func (r *recency) settle() {
	visits := r.visits[:r.pending]
	r.pending = 0
	for a := 1; a <= setBits; a++ {
		var stay, done int
		if a <= fewSets {
			stay, done = r.visitLogs(a, visits)
		} else {
			stay, done = r.visitLists(a, visits)
		}
		for _, above := range r.done[:done] {
			for b := a; above != 0; b++ {
				r.depths[b][above&laneMask]++
				above >>= laneBits
			}
		}
		visits = visits[:stay]
	}
}

func (r *recency) visitLogs(a int, visits []visit) (stay, done int) {
	logs, depths := r.logs[a], &r.depths[a]
	for i := range visits {
		v := &visits[i]
		after, now, set, moves, above := v.after, v.now, v.set, v.moves, v.above
		h := &logs[int(set)&(len(logs)-1)]
		e := &h.entries
		limit := int64(^after) + 1
		j := uint64(int64(e[31])-limit) >> 63 << 5
		j += uint64(int64(e[j+15])-limit) >> 63 << 4
		j += uint64(int64(e[j+7])-limit) >> 63 << 3
		j += uint64(int64(e[j+3])-limit) >> 63 << 2
		j += uint64(int64(e[j+1])-limit) >> 63 << 1
		j += uint64(int64(e[j])-limit) >> 63
		live := h.live
		newer := live & (1<<(j&63) - 1)
		older := live &^ newer
		stays := (-newer | uint64(after) - 1) >> 63 // 1, or 0: the line is in front
		m := uint64(moves)
		slot := (historyRoom - 1 - h.used) & historyRoom
		e[slot] = ^now
		depths[(ones(newer)+above&laneMask+m*moved)&255] += stays
		h.live = live&^(older&-older&-m) | m<<slot
		h.used += moves
		if h.used == historyRoom {
			h.compact()
		}
		r.done[done&(visitRoom-1)] = above
		done += int(1 - stays)
		k := &visits[stay&(visitRoom-1)]
		k.after, k.now, k.set, k.moves, k.above = after, now, set, moves, above>>laneBits
		stay += int(stays)
	}
	return stay, done
}

// ones counts bits as math/bits does where the processor has no instruction:
// asking whether it has one costs registers in a loop.
func ones(x uint64) uint64 {
	x -= x >> 1 & 0x5555555555555555
	x = x&0x3333333333333333 + x>>2&0x3333333333333333
	x = (x + x>>4) & 0x0f0f0f0f0f0f0f0f
	return x * 0x0101010101010101 >> 56
}

// compact keeps the newest lines, as many as count.
func (h *history) compact() {
	var newest [MaxWays]uint32
	n := 0
	for live := h.live; live != 0 && n < MaxWays; live &= live - 1 {
		newest[n] = h.entries[bits.TrailingZeros64(live)]
		n++
	}
	clear(h.entries[:historyRoom-n])
	copy(h.entries[historyRoom-n:], newest[:n])
	h.used = uint32(n)
	h.live = (1<<n - 1) << (historyRoom - n)
}

func (r *recency) visitLists(a int, visits []visit) (stay, done int) {
	lists, depths := r.lists[a], &r.depths[a]
	for i := range visits {
		v := &visits[i]
		after, now, above := v.after, v.now, v.above
		list := &lists[int(v.set)&(len(lists)-1)]
		if list[0] < after {
			r.done[done&(visitRoom-1)] = above
			done++
			continue
		}
		k := &visits[stay&(visitRoom-1)]
		k.after, k.now, k.set, k.moves, k.above = after, now, v.set, v.moves, above>>laneBits
		stay++
		switch {
		case v.moves == 0:
			depths[(newer(list, after)+int(above&laneMask))&255]++
		case list[MaxWays-1] >= after:
			copy(list[1:], list[:])
			list[0] = now
		default:
			moveToFront(list, after, now)
		}
	}
	return stay, done
}

func newer(list *[MaxWays]uint32, after uint32) (n int) {
	if list[MaxWays-1] >= after {
		return MaxWays
	}
	for n < MaxWays && list[n] >= after {
		n++
	}
	return n
}

func moveToFront(list *[MaxWays]uint32, after, now uint32) {
	carry := now
	for i, entry := range list {
		list[i] = carry
		if carry = entry; entry < after {
			return
		}
	}
}
