package blocks

import "slices"

// connected returns the functions that are reachable from roots. They are grouped into the strongly
// connected components of the call graph, callers first (Tarjan, Depth-First Search and Linear
// Graph Algorithms, 1972).
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
	seen, low []int32 // seen: 1 + the order of discovery; 0: not seen yet; -1: in a complete component
	order     int32
	open      []int32
	stack     []following
	list      [][]int32
	calls     func(f int32) ([]call, error)
}

// following is a function on the path of the search, with its calls that have not been followed
// yet.
type following struct {
	function int32
	calls    []call
}

func (c *connecting) begin(f int32) error {
	c.order++
	c.seen[f], c.low[f] = c.order, c.order
	c.open = append(c.open, f)
	calls, err := c.calls(f)
	c.stack = append(c.stack, following{f, calls})
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
			c.end(f)
		}
	}
	return nil
}

// end completes the component that consists of f and the functions after it in c.open.
func (c *connecting) end(f int32) {
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
