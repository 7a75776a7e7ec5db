package blocks

import "slices"

// connected returns the functions that are reachable from the roots. The functions are grouped into
// the strongly connected components of the call graph, callers first (Tarjan, Depth-First Search
// and Linear Graph Algorithms, 1972).
func connected(n int, isRoot func(f int) bool, calls func(f int32) ([]call, error)) ([][]int32, error) {
	c := connecting{seen: make([]int32, n), low: make([]int32, n), calls: calls}
	for root := range n {
		if c.seen[root] == 0 && isRoot(root) {
			if err := c.from(int32(root)); err != nil {
				return nil, err
			}
		}
	}
	slices.Reverse(c.list)
	return c.list, nil
}

type connecting struct {
	seen, low []int32 // seen: discovery number, from 1; 0 before the discovery; -1 once the component is complete
	order     int32
	open      []int32
	stack     []searchFrame
	list      [][]int32
	calls     func(f int32) ([]call, error)
}

// searchFrame is a function on the current search path, together with the calls that the search has
// not followed yet.
type searchFrame struct {
	function int32
	calls    []call
}

func (c *connecting) begin(f int32) error {
	c.order++
	c.seen[f], c.low[f] = c.order, c.order
	c.open = append(c.open, f)
	calls, err := c.calls(f)
	c.stack = append(c.stack, searchFrame{f, calls})
	return err
}

func (c *connecting) from(root int32) error {
	if err := c.begin(root); err != nil {
		return err
	}
	for len(c.stack) > 0 {
		top := &c.stack[len(c.stack)-1]
		f := top.function
		if len(top.calls) > 0 {
			g := top.calls[0].callee
			top.calls = top.calls[1:]
			if c.seen[g] == 0 {
				if err := c.begin(g); err != nil {
					return err
				}
			} else if c.seen[g] > 0 {
				c.low[f] = min(c.low[f], c.seen[g])
			}
			continue
		}
		c.stack = c.stack[:len(c.stack)-1]
		if len(c.stack) > 0 {
			above := c.stack[len(c.stack)-1].function
			c.low[above] = min(c.low[above], c.low[f])
		}
		if c.low[f] == c.seen[f] {
			c.completeComponent(f)
		}
	}
	return nil
}

// completeComponent records a component: function f and all functions after f in c.open.
func (c *connecting) completeComponent(f int32) {
	at := len(c.open) - 1
	for c.open[at] != f {
		at--
	}
	members := slices.Clone(c.open[at:])
	c.open = c.open[:at]
	for _, m := range members {
		c.seen[m] = -1
	}
	c.list = append(c.list, members)
}
