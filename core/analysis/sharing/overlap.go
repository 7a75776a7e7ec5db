package sharing

import "github.com/stackglass/stackglass/core/profile"

// overlaps tells of an access whether, since its core touched the line, there was a
// line that both the core and another one touched.
//
// That is so if, over all lines y, the greatest of min(last touch of y by the core,
// last touch of y by another) is later than the core's last touch of the line. The
// greatest changes only where the last toucher of a line does: then the earlier of
// both is the touch before, for the core that made it as for the one that follows.
// And if the line itself was last touched by its own core, that touch is the last one
// of all, so that one time a line is enough.
type overlaps struct {
	now  uint64
	both [profile.MaxCores]uint64 // of each core the greatest minimum
}

// touch records that a core touches a line, and how it finds it.
func (o *overlaps) touch(e *entry, core uint8) (foreign, overlap bool) {
	o.now++
	last, before := uint8(e.last), e.last>>8
	e.last = o.now<<8 | uint64(core)
	own, other := &o.both[core%profile.MaxCores], &o.both[last%profile.MaxCores]
	if before != 0 && last != core {
		*own, *other = max(*own, before), max(*other, before)
		return true, false
	}
	return false, before != 0 && *own > before
}
