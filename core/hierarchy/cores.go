package hierarchy

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Share is the part of a partitioned shared level that is reserved for one core.
type Share struct {
	Thread    uint32 // a thread that runs on the core
	SizeBytes uint64
}

// stackKey identifies an LRU stack of a profile.
type stackKey struct {
	lineBytes    uint32
	kind         stackKind
	domain, core int // a field is 0 if it does not apply to stacks of this kind
}

type stackKind uint8

const (
	wholeStack    stackKind = iota // all accesses, as if one core made them
	privateStack                   // a core's accesses, ignoring coherence
	coherentStack                  // a core's accesses; accesses to invalidated lines count as cold
	lostStack                      // coherence misses, by the depth at which the line was invalidated
	foreignStack                   // accesses to lines that another core accessed last, by their distances on the core's own stack
	memberStack                    // a core's accesses, by their distances on the stack of a domain
	// the same accesses as in foreignStack, by their distances on the common stack of all cores
	foreignAtStack
)

// stackCurve is the miss-ratio curve of a stack with its set table, which may be nil.
type stackCurve struct {
	*profile.Curve
	sets *profile.SetTable
}

// stackCache is a stack with the cache parameters that SDCM needs.
type stackCache struct {
	stackKey
	ways  uint32
	lines uint64
}

// maxCachedResults is the maximum number of SDCM results that an [Asker] caches.
const maxCachedResults = 1024

// coreMisses contains the misses of one core in a cache that sees all accesses of the core.
type coreMisses struct {
	accesses, misses, sdcm, coherence float64
	method                            Method // either Exact or SDCM
	forecast                          *Forecast
}

// singleCore returns a cache's misses under the assumption that a single core made all accesses.
func (a *Asker) singleCore(c Cache) coreMisses {
	n := a.answer(stackKey{lineBytes: c.LineBytes, kind: wholeStack}, nil, c)
	if c.Full() {
		n.sdcm = 0
	} else if misses, ok := fetched(a.p.Sites, c); ok && n.method == SDCM {
		n.misses, n.method = float64(misses), Exact
	}
	if estimated(a.p) && !c.Full() {
		n.method = SDCM
	}
	if a.Forecast != nil {
		f := a.Forecast(c)
		if n.forecast = &f; f.Counted {
			n.misses, n.method = f.Misses, Exact
		} else {
			f.Low, f.High = min(f.Low, n.misses), max(f.High, n.misses)
		}
	}
	return n
}

// fetched returns the number of lines that a cache fetched, if the profile contains the cache's
// line utilisation. The line utilisation is measured by simulating the sets, so the result is exact
// for any number of sets.
func fetched(s *profile.Sites, c Cache) (misses uint64, ok bool) {
	if s == nil || c.Hashed || c.LineBytes != s.LineBytes {
		return 0, false
	}
	at := s.Measured(c.Lines(), c.Ways)
	if at < 0 {
		return 0, false
	}
	for i := range s.Code {
		misses += s.Code[i].Reuse.Used[at].Fetched
	}
	return misses, true
}

// perCore returns each core's misses in a level. If the slice "parts" is not empty, it contains
// each core's part of the level.
func (a *Asker) perCore(s *profile.Sharing, c Cache, parts []Cache) ([]coreMisses, error) {
	cores := make([]coreMisses, len(s.Cores))
	if len(parts) > 0 {
		for k := range cores {
			cores[k] = a.answer(stackKey{lineBytes: s.LineBytes, kind: privateStack, core: k}, s, parts[k])
		}
		return cores, nil
	}
	groups, ok := groupsOf(s, c.SharedBy)
	if !ok {
		return nil, newDomainError(c, s)
	}
	for _, g := range groups {
		if g.domain < 0 {
			cores[g.core] = a.privateMisses(s, c, g.core)
		} else {
			a.sharedMisses(s, c, g.domain, cores)
		}
	}
	return cores, nil
}

// privateMisses returns the misses of a core's private cache, including coherence misses.
func (a *Asker) privateMisses(s *profile.Sharing, c Cache, core int) coreMisses {
	n := a.answer(stackKey{lineBytes: s.LineBytes, kind: coherentStack, core: core}, s, c)
	// an access to an invalidated line is a coherence miss only if the line would otherwise have
	// been present
	lost := a.answer(stackKey{lineBytes: s.LineBytes, kind: lostStack, core: core}, s, c)
	n.coherence = min(n.misses, lost.accesses-lost.misses)
	return n
}

// sharedMisses computes the misses in a cache that the cores of a domain share, and stores each
// core's misses in the slice "cores". If a set table yields the exact total, sharedMisses
// divides the total among the cores in proportion to the misses that SDCM predicts.
func (a *Asker) sharedMisses(s *profile.Sharing, c Cache, domain int, cores []coreMisses) {
	d := &s.Domains[domain]
	members := make([]coreMisses, len(d.Cores))
	var cold float64
	var accesses uint64
	for k, core := range d.Cores {
		key := stackKey{s.LineBytes, memberStack, domain, int(core)}
		stack := a.stack(key, s)
		members[k] = a.answer(key, s, c)
		accesses += stack.Accesses
		cold += float64(stack.Cold)
	}
	if hits, ok := tableHits(d.Counted(), c); ok {
		apportion(members, d.Members, float64(accesses-hits), cold)
	}
	for k, core := range d.Cores {
		cores[core] = members[k]
	}
}

// apportion scales the cores' predicted misses so that they add up to the parameter "sum". If SDCM
// predicts too many misses, apportion scales each core's misses other than cold misses. If SDCM
// predicts too few misses, apportion scales each core's hits.
func apportion(cores []coreMisses, members []profile.Member, sum, cold float64) {
	var expected, accesses float64
	for _, n := range cores {
		expected += n.misses
		accesses += n.accesses
	}
	for k := range cores {
		n, first := &cores[k], float64(members[k].Cold)
		n.method = Exact
		switch {
		case sum < expected:
			n.misses = first + (n.misses-first)*(sum-cold)/(expected-cold)
		case sum > expected:
			n.misses = n.accesses - (n.accesses-n.misses)*(accesses-sum)/(accesses-expected)
		}
	}
}

// answer returns the misses of a stack's accesses in a cache.
func (a *Asker) answer(key stackKey, s *profile.Sharing, c Cache) coreMisses {
	stack := a.stack(key, s)
	n := coreMisses{accesses: float64(stack.Accesses), method: Exact}
	if c.Full() {
		n.misses = float64(stack.Misses(c.Lines()))
		n.sdcm = n.misses
		return n
	}
	n.sdcm = a.sdcmMisses(key, stack.Curve, c)
	if hits, ok := tableHits(stack.sets, c); ok {
		n.misses = float64(stack.Accesses - hits)
	} else {
		n.misses, n.method = n.sdcm, SDCM
	}
	return n
}

// sdcmMisses returns the misses that SDCM predicts for a set-associative cache.
func (a *Asker) sdcmMisses(key stackKey, curve *profile.Curve, c Cache) float64 {
	cache := stackCache{key, c.Ways, c.Lines()}
	misses, kept := a.sdcm[cache]
	if !kept {
		misses = max(0, float64(curve.Accesses)-expectedHits(curve, c.Lines(), uint64(c.Ways)))
		if len(a.sdcm) >= maxCachedResults {
			clear(a.sdcm)
		}
		a.sdcm[cache] = misses
	}
	return misses
}

// tableHits returns a cache's hits from a set table, if the table contains the cache's geometry.
func tableHits(t *profile.SetTable, c Cache) (hits uint64, ok bool) {
	if c.Full() || c.Hashed || t == nil {
		return 0, false
	}
	return t.Hits(c.Sets(), uint64(c.Ways))
}

// sharing returns the per-thread stacks for a line size, or nil.
func (a *Asker) sharing(lineBytes uint32) *profile.Sharing {
	for i := range a.p.Sharing {
		if a.p.Sharing[i].LineBytes == lineBytes {
			return &a.p.Sharing[i]
		}
	}
	return nil
}

// stack returns the curve of a stack, and caches it.
func (a *Asker) stack(key stackKey, s *profile.Sharing) stackCurve {
	if found, ok := a.stacks[key]; ok {
		return found
	}
	made := a.makeStack(key, s)
	a.stacks[key] = made
	return made
}

func (a *Asker) makeStack(key stackKey, s *profile.Sharing) stackCurve {
	of := func(n *profile.StackCounts, lost uint64) stackCurve {
		return stackCurve{profile.NewCurve(&n.Distances, n.Cold+lost), n.Counted()}
	}
	switch key.kind {
	case wholeStack:
		l := a.p.LocalityAt(key.lineBytes)
		return stackCurve{profile.NewCurve(l.Histogram(trace.AllKinds)), l.Sets}
	case privateStack:
		return of(&s.Cores[key.core].Private, 0)
	case coherentStack:
		n := &s.Cores[key.core].Coherent
		return of(&n.StackCounts, n.Lost.Total())
	case lostStack:
		return stackCurve{profile.NewCurve(&s.Cores[key.core].Coherent.Lost, 0), nil}
	case foreignStack:
		return of(&s.Cores[key.core].Foreign, 0)
	case foreignAtStack:
		return of(&s.Domains[0].Foreign, 0)
	}
	d := &s.Domains[key.domain]
	m := &d.Members[slices.Index(d.Cores, uint32(key.core))]
	return stackCurve{profile.NewCurve(&m.Distances, m.Cold), nil}
}

// coreGroup identifies the cores that share one cache of a level: the cores of a domain or, if
// domain is negative, one core.
type coreGroup struct{ domain, core int }

// groupsOf divides the cores into groups of sharedBy cores. Each group corresponds to a domain of
// the profile. Consecutive cores share a cache if the profile has a domain for them. If there is no
// such domain, the other domains of the profile determine which cores share a cache. If fewer than
// sharedBy cores remain at the end, they share the last cache. The result ok is false if the
// profile lacks a domain for some cores.
func groupsOf(s *profile.Sharing, sharedBy uint32) (groups []coreGroup, ok bool) {
	n := int(min(uint64(max(sharedBy, 1)), uint64(len(s.Cores))))
	grouped := make([]bool, len(s.Cores))
	add := func(domain int) {
		groups = append(groups, coreGroup{domain: domain})
		for _, core := range s.Domains[domain].Cores {
			grouped[core] = true
		}
	}
	var rest []uint32
	for core := range s.Cores {
		if grouped[core] {
			continue
		}
		if domain := domainStartingAt(s, core, n, grouped); domain >= 0 {
			add(domain)
		} else {
			rest = append(rest, uint32(core))
		}
	}
	switch domain := slices.IndexFunc(s.Domains, func(d profile.Domain) bool { return slices.Equal(d.Cores, rest) }); {
	case len(rest) == 1 || n == 1:
		for _, core := range rest {
			groups = append(groups, coreGroup{-1, int(core)})
		}
	case len(rest) >= n || len(rest) > 0 && domain < 0:
		return nil, false
	case len(rest) > 0:
		add(domain)
	}
	return groups, true
}

// domainStartingAt returns the number of a domain that begins with the given core and contains n
// cores, none of which is in a group yet. If several domains qualify, domainStartingAt prefers a
// domain of consecutive cores. If no domain qualifies, it returns -1.
func domainStartingAt(s *profile.Sharing, first, n int, grouped []bool) (number int) {
	number = -1
	for i := range s.Domains {
		cores := s.Domains[i].Cores
		if n == 1 || len(cores) != n || int(cores[0]) != first || slices.ContainsFunc(cores, func(c uint32) bool { return grouped[c] }) {
			continue
		}
		if int(cores[n-1]) == first+n-1 {
			return i
		}
		if number < 0 {
			number = i
		}
	}
	return number
}

// DomainError reports that the profile has no common stack for cores that share a level.
// DomainError wraps a [*trace.OptionError].
type DomainError struct {
	Level Cache
	// for each cache of the level: the threads that share the cache; a new analysis needs these
	// groups as domains
	Groups  [][]uint32
	Domains string // the groups, in the form of --domains
	err     *trace.OptionError
}

func (e *DomainError) Error() string { return e.err.Error() }
func (e *DomainError) Unwrap() error { return e.err }

func newDomainError(c Cache, s *profile.Sharing) *DomainError {
	e := &DomainError{Level: c}
	for i := range s.Cores {
		if i%int(c.SharedBy) == 0 {
			e.Groups = append(e.Groups, nil)
		}
		group := &e.Groups[len(e.Groups)-1]
		*group = append(*group, s.Cores[i].Threads...)
	}
	for i, group := range e.Groups {
		slices.Sort(group)
		for k, t := range group {
			switch {
			case k > 0:
				e.Domains += ","
			case i > 0:
				e.Domains += "/"
			}
			e.Domains += strconv.FormatUint(uint64(t), 10)
		}
	}
	e.err = &trace.OptionError{Option: "cache", Got: c.String(), Want: "a profile with a common stack for the cores that share the cache; " +
		"analyse the trace again, with --domains " + e.Domains}
	return e
}

// lastShared returns the index of the last level that several cores share, or -1.
func lastShared(h Hierarchy) int {
	for i := len(h.Levels) - 1; i >= 0; i-- {
		if h.Levels[i].SharedBy > 1 {
			return i
		}
	}
	return -1
}

// parts divides the last shared level into one cache for each core. If the slice "shares" is empty,
// it returns nil.
func (a *Asker) parts(h Hierarchy, shares []Share) ([]Cache, error) {
	if len(shares) == 0 {
		return nil, nil
	}
	level := lastShared(h)
	if level < 0 {
		return nil, badShare(shares[0], "a hierarchy with a cache that several cores share, for example --cache L2=8MiB,16,shared=all")
	}
	cores := a.p.Sharing[0].Cores
	parts, left, unnamed := make([]Cache, len(cores)), h.Levels[level].SizeBytes, uint64(len(cores))
	for _, share := range shares {
		core := slices.IndexFunc(cores, func(c profile.Core) bool { return slices.Contains(c.Threads, share.Thread) })
		switch {
		case core < 0:
			return nil, badShare(share, "a thread of the trace")
		case parts[core].SizeBytes > 0:
			return nil, badShare(share, "at most one share per core")
		case share.SizeBytes > left:
			return nil, badShare(share, "shares that add up to at most "+FormatSize(h.Levels[level].SizeBytes)+", the size of "+h.Levels[level].Name)
		}
		parts[core].SizeBytes = share.SizeBytes
		left, unnamed = left-share.SizeBytes, unnamed-1
	}
	for k := range parts {
		size := parts[k].SizeBytes
		if parts[k] = h.Levels[level]; size == 0 {
			size = equalPart(parts[k], left/unnamed)
		}
		parts[k].SizeBytes = size
		if err := parts[k].Check(); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func badShare(share Share, want string) error {
	got := strconv.FormatUint(uint64(share.Thread), 10) + "=" + FormatSize(share.SizeBytes)
	return &trace.OptionError{Option: "share", Got: got, Want: want}
}

// equalPart rounds a size in bytes down to a whole number of cache sets.
func equalPart(c Cache, bytes uint64) uint64 {
	return bytes - bytes%(uint64(c.LineBytes)*uint64(max(c.Ways, 1)))
}

// Curves returns three miss-ratio curves of a core's private cache. The "private" curve ignores
// coherence. The "coherent" curve counts coherence misses as cold misses. The "lost" curve contains
// only the coherence misses, by the stack depth at which the line was invalidated. The profile must
// have per-thread stacks for this line size.
func (a *Asker) Curves(lineBytes uint32, core int) (private, coherent, lost *profile.Curve) {
	of := func(kind stackKind) *profile.Curve {
		return a.stack(stackKey{lineBytes, kind, 0, core}, a.sharing(lineBytes)).Curve
	}
	return of(privateStack), of(coherentStack), of(lostStack)
}

// MemberCurve returns the misses of one core's accesses for every size of a cache that the cores of
// a domain share. The profile must contain the domain, and the domain must contain the core.
func (a *Asker) MemberCurve(lineBytes uint32, domain, core int) *profile.Curve {
	return a.stack(stackKey{lineBytes, memberStack, domain, core}, a.sharing(lineBytes)).Curve
}

// Alone returns the misses of a core in a private cache without coherence. The profile must have
// per-thread stacks for the cache's line size.
func (a *Asker) Alone(c Cache, core int) float64 {
	return a.answer(stackKey{c.LineBytes, privateStack, 0, core}, a.sharing(c.LineBytes), c).misses
}

// Domain returns the number of the profile's domain whose cores share a level with this core, or -1
// if the level is private.
func (a *Asker) Domain(c Cache, core int) int {
	s := a.sharing(c.LineBytes)
	groups, _ := groupsOf(s, c.SharedBy)
	for _, g := range groups {
		if g.domain >= 0 && slices.Contains(s.Domains[g.domain].Cores, uint32(core)) {
			return g.domain
		}
	}
	return -1
}

// EffectiveShare returns the smallest capacity, in lines, of a private cache in which the core
// would have no more misses than in the shared level. The private cache and the shared level are
// fully associative, with LRU replacement (Anger, Figure 8). The result ok is false if no capacity
// is large enough. This can happen because, in the shared level, other cores fetch lines that this
// core uses later.
func (a *Asker) EffectiveShare(c Cache, core int) (lines uint64, ok bool) {
	domain := a.Domain(c, core)
	if domain < 0 {
		return c.Lines(), true
	}
	private, _, _ := a.Curves(c.LineBytes, core)
	return private.CapacityFor(a.MemberCurve(c.LineBytes, domain, core).Misses(c.Lines()))
}

// Views contains the misses that each model of MODELS §6 predicts for the private caches of all
// cores together. Each cache sees all accesses of its core.
type Views struct {
	Accesses float64
	// Private ignores coherence (MODELS §6.1). In Anger's model, lines that another core touched
	// last are looked up in a single cache that is as large as all private caches together
	// (MODELS §6.3). Coherent invalidates lines that another core stores to (MODELS §6.4).
	Private, Anger, Coherent float64
	Exact                    bool // false if any of the numbers was computed with SDCM
}

// Views returns the misses that each model predicts for a private level. The result ok is false if
// the profile has no per-thread stacks for the cache's line size.
func (a *Asker) Views(c Cache) (v Views, ok bool) {
	s := a.sharing(c.LineBytes)
	if s == nil || c.Check() != nil {
		return v, false
	}
	v.Exact = !estimated(a.p)
	count := func(key stackKey, c Cache) (accesses, misses float64) {
		n := a.answer(key, s, c)
		v.Exact = v.Exact && n.method == Exact
		return n.accesses, n.misses
	}
	for k := range s.Cores {
		all, private := count(stackKey{c.LineBytes, privateStack, 0, k}, c)
		_, coherent := count(stackKey{c.LineBytes, coherentStack, 0, k}, c)
		foreign, foreignMisses := count(stackKey{c.LineBytes, foreignStack, 0, k}, c)
		v.Accesses += all
		v.Private += private
		v.Coherent += coherent
		v.Anger += private + (foreign - foreignMisses)
	}
	together := c
	together.SizeBytes *= uint64(len(s.Cores))
	together.Ways *= uint32(len(s.Cores))
	found, missed := count(stackKey{lineBytes: c.LineBytes, kind: foreignAtStack}, together)
	v.Anger -= found - missed
	return v, true
}

// MostCores is the maximum number of cores.
const MostCores = profile.MaxCores

// OrderDoubt returns a warning if the trace orders the references of different threads only by time
// slices, and otherwise "".
func OrderDoubt(p *profile.Profile) Warning {
	if !p.Input.Header.Sliced || len(p.Totals.Threads) < 2 {
		return ""
	}
	return "the trace orders the references of different threads only by time slice: " +
		"within a slice, invalidations and fetches for other cores may occur earlier or later than in the run (STACKGLASS_ORDER=exact records their order)"
}
