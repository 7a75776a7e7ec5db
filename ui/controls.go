package ui

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/ui/state"
)

// The type "controls" contains the handlers of the controls that change a hierarchy's levels.
// Several views share it.
type controls struct{ App *App }

func (c *controls) id(name string, level int) string { return name + "-" + strconv.Itoa(level+1) }

func (c *controls) index(cache hierarchy.Cache) string {
	return strconv.Itoa(max(0, slices.Index(state.Sizes(cache.SizeBytes), cache.SizeBytes)))
}

func (c *controls) last(cache hierarchy.Cache) int { return len(state.Sizes(cache.SizeBytes)) - 1 }

func (c *controls) size(level int, text string) {
	levels := c.App.Levels()
	if level >= len(levels) {
		return
	}
	sizes := state.Sizes(levels[level].SizeBytes)
	if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(sizes) {
		c.App.SetSize(level+1, sizes[i])
	}
}

func (c *controls) canWays(cache hierarchy.Cache, by int) bool {
	return state.Step(state.Ways(cache), cache.Ways, by) != cache.Ways
}

func (c *controls) canLine(cache hierarchy.Cache, by int) bool {
	return state.Step(c.App.LineSizes(), cache.LineBytes, by) != cache.LineBytes
}

// ariaDisabled returns the aria-disabled value of a button. The button is not disabled, because a
// keyboard user would lose the focus.
func (c *controls) ariaDisabled(can bool) any {
	if can {
		return nil
	}
	return "true"
}
