package state

import "slices"

// Sorted returns the grid with its rows in the given order, as [Table.Ordered] does. In a tree, the
// rows with the same parent are sorted, and each row stays above its child rows.
func (g *Grid) Sorted(o Order) *Grid {
	compare := g.Table.comparer(o)
	if compare == nil {
		return g
	}
	rows := g.sortedRows(compare)
	made, table := *g, *g.Table
	made.Table, made.rows = &table, rows
	table.Sort, table.Reverse = o.Column, o.Reverse
	made.Order += " " + o.String()
	made.Selected = slices.Index(rows, g.Selected)
	made.Depths, made.Folded = nil, nil
	for _, row := range rows {
		if g.Depths != nil {
			made.Depths = append(made.Depths, g.Depths[row])
		}
		if g.Folded != nil {
			made.Folded = append(made.Folded, g.Folded[row])
		}
	}
	return &made
}

// At converts a row of the sorted grid to a row of the unsorted grid. The methods of a grid, such
// as Row, expect row numbers of the unsorted grid.
func (g *Grid) At(row int) int {
	if row < 0 || row >= len(g.rows) {
		return row
	}
	return g.rows[row]
}

// sortedRows returns the rows of the grid in sorted order.
func (g *Grid) sortedRows(compare func(i, j int) int) (rows []int) {
	below := make([][]int, g.Rows+1) // for each parent (at the parent's index + 1): the child rows; at index 0: the rows without a parent
	var open []int                   // for each depth: the latest row at this depth
	for i := range g.Rows {
		depth := 0
		if g.Depths != nil {
			depth = min(g.Depths[i]-1, len(open))
		}
		parent := 0
		if depth > 0 {
			parent = open[depth-1] + 1
		}
		open = append(open[:depth], i)
		below[parent] = append(below[parent], i)
	}
	var add func(list []int)
	add = func(list []int) {
		slices.SortStableFunc(list, compare)
		for _, i := range list {
			rows = append(rows, i)
			add(below[i+1])
		}
	}
	add(below[0])
	return rows
}
