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

// Flags of an access.
const (
	foreignFlag = 1 << iota // another core touched the line last
	overlapFlag             // none did, but a line that the core used too, in between
)

// touch notes that a core touches a line, and gives the flags of the access.
func (d *domain) touch(e *entry, core uint8) (flags uint8) {
	o := &d.overlaps
	o.now++
	last, before := uint8(e.last), e.last>>8
	e.last = o.now<<8 | uint64(core)
	switch {
	case before == 0:
		return 0
	case last != core:
		o.both[core%profile.MaxCores] = max(o.both[core%profile.MaxCores], before)
		o.both[last%profile.MaxCores] = max(o.both[last%profile.MaxCores], before)
		return foreignFlag
	case o.both[core%profile.MaxCores] > before:
		return overlapFlag
	}
	return 0
}
