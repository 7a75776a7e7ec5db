// Package hierarchy answers questions about caches from a profile.
package hierarchy

import (
	"errors"

	"github.com/stackglass/stackglass/core/profile"
)

// Cache is one level of a hierarchy.
type Cache struct {
	Name      string
	SizeBytes uint64
	Ways      uint32 // 0: fully associative
	LineBytes uint32
}

// Hierarchy is a list of levels, first level first.
type Hierarchy struct {
	Name   string
	Levels []Cache
}

// Method says how a level's numbers were computed.
type Method string

// The methods.
const (
	Exact Method = "exact" // fully associative LRU, from the histogram (MODELS §3)
	SDCM  Method = "sdcm"  // set-associative, by the stack distance cache model (MODELS §5)
)

// Level is the prediction for one cache.
type Level struct {
	Cache    Cache
	Accesses float64 // whole numbers when the method is exact
	Hits     float64
	Misses   float64
	Method   Method
}

// Prediction is the answer: each level, and the accesses that reach memory.
type Prediction struct {
	Levels         []Level
	MemoryAccesses float64
}

// Warning is a doubt about a prediction, in a sentence.
type Warning string

// Predict answers for every level of h. Questions that p cannot answer (a line
// size that it has no histogram for) are errors; doubts are warnings.
func Predict(p *profile.Profile, h Hierarchy) (Prediction, []Warning, error) {
	return Prediction{}, nil, errors.New("not yet")
}

// ParseCache reads NAME=SIZE,WAYS[,LINE], as in "L1=32KiB,8" or
// "L2=1MiB,full,64". WAYS "full" is fully associative; LINE is 64 by default.
func ParseCache(s string) (Cache, error) { return Cache{}, errors.New("not yet") }

// ParseSize reads a number of bytes: 32KiB, 32K, 32768. K, M, G and T are binary.
func ParseSize(s string) (uint64, error) { return 0, errors.New("not yet") }

// FormatSize writes a number of bytes the way ParseSize reads it: 32KiB.
func FormatSize(bytes uint64) string { return "" }

// Presets are hierarchies to start from, by name.
func Presets() []Hierarchy { return nil }
