package blocks

import (
	"math/big"
	"slices"
)

// Rational computes the counts of blocks as exact rational numbers. Small programs take
// microseconds. If the weights of nested loops have no common divisors, the numbers become long.
// Programs with thousands of blocks take minutes.
func (s *System) Rational() ([]*big.Rat, error) {
	list, err := s.components()
	if err != nil {
		return nil, err
	}
	visits := make([]*big.Rat, len(s.program.Blocks))
	for b := range visits {
		visits[b] = new(big.Rat)
	}
	calls := make([]*big.Rat, len(s.functions))
	for _, members := range list {
		functions, err := s.rationalComponent(members)
		if err != nil {
			return nil, err
		}
		entries := make([]*big.Rat, len(members))
		for i, f := range members {
			entries[i] = new(big.Rat).SetFrac(new(big.Int).SetUint64(s.entered[f]), big.NewInt(1))
			if calls[f] != nil {
				entries[i].Add(entries[i], calls[f])
			}
		}
		for i := range members {
			for to, n := range functions[i].resumedCalls {
				entries[to].Add(entries[to], n)
			}
		}
		if f := solveDense(callMatrix(functions), entries); f >= 0 {
			return nil, s.divergenceError(members[f])
		}
		for i, f := range members {
			g := &s.functions[f]
			for state, b := range g.blocks {
				visits[b].Mul(functions[i].visits[state], entries[i])
				if functions[i].resumed != nil {
					visits[b].Add(visits[b], functions[i].resumed[state])
				}
			}
			for _, c := range g.calls {
				if calls[c.callee] == nil {
					calls[c.callee] = new(big.Rat)
				}
				calls[c.callee].Add(calls[c.callee], c.made.ofRational(visits[g.blocks[c.state]]))
			}
		}
	}
	return visits, nil
}

// AllWhole reports whether all counts are proven to be integers.
func (c *Solution) AllWhole() bool { return !slices.Contains(c.Whole, false) }
