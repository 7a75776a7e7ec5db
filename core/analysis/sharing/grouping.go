package sharing

// Grouping puts threads on cores as an [Analysis] does, for one that stands in for it.
type Grouping struct {
	cores    cores
	appeared []uint32
}

// NewGrouping has these threads share cores, and all others have one of their own.
func NewGrouping(groups [][]uint32) *Grouping {
	g := new(Grouping)
	g.cores.reset(groups)
	return g
}

// Core gives a thread's core, by order of appearance: a new one if need be.
func (g *Grouping) Core(thread uint32) uint8 {
	r := &g.cores.recent[thread%256]
	if r.thread != thread || !r.known {
		if _, known := g.cores.of[thread]; !known {
			g.appeared = append(g.appeared, thread)
		}
		*r = recentThread{thread, true, g.cores.core(thread)}
	}
	return r.core
}

// Known gives a thread's core if it has appeared.
func (g *Grouping) Known(thread uint32) (core uint8, known bool) {
	core, known = g.cores.of[thread]
	return core, known
}

// Cores is how many there are.
func (g *Grouping) Cores() int { return len(g.cores.list) }

// Appeared lists the threads so far, in the order in which they came.
func (g *Grouping) Appeared() []uint32 { return g.appeared }

// Threads gives the threads of each core so far, ascending.
func (g *Grouping) Threads() [][]uint32 { return g.cores.threads() }

// IsIn tells whether a core is in the domain of some threads.
func (g *Grouping) IsIn(core uint8, threads []uint32) bool {
	d := domain{threads: threads}
	return d.isFor(&g.cores.list[core])
}

// Order lists the cores as profiles do, by their first threads.
func (g *Grouping) Order() []int { return g.cores.order() }
