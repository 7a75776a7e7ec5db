package misses

// Level is one of several, by the inclusive model.
type Level struct {
	Cache            Cache
	Accesses, Misses uint64 // accesses are the misses of the level above
	// Bound tells that by itself the level would miss more often than the one above:
	// what a set loses here may be held there.
	Bound bool
}

// Levels gives the levels of a hierarchy from what each cache does by itself, the first
// level first (MODELS §3). The model has each level see every access. A real second
// level sees only what the first one misses, so that its LRU order is another; and
// levels whose lines differ in size from the first one's are approximate.
func Levels(alone ...*Result) []Level {
	levels := make([]Level, len(alone))
	for i, r := range alone {
		l := Level{Cache: r.Cache, Accesses: r.Total.Accesses, Misses: r.Total.Misses}
		if i > 0 {
			l.Accesses = levels[i-1].Misses
			l.Bound = l.Misses > l.Accesses
			l.Misses = min(l.Misses, l.Accesses)
		}
		levels[i] = l
	}
	return levels
}
