package state

import "math"

// Part is a part of a map: its rows [Part[0], Part[2]) and its columns [Part[1], Part[3]). The zero Part
// is the whole map.
type Part [4]int

// axes describes the two axes of a map, first its rows and then its columns: the ID of the axis in
// a [Zoom], the number of cells, and the size of a cell.
func (m *Matrix) axes() (ids [2]string, cells [2]int, steps [2]float64) {
	return [2]string{m.ID + "-rows", m.ID}, [2]int{len(m.Rows), len(m.Columns)}, [2]float64{m.RowStep, m.ColumnStep}
}

// Zoomed returns the part of the map that the screen shows. An axis is shown completely if it has
// no zoom, or if its zoom is outside of the map.
func (m *Matrix) Zoomed(s Screen) *Matrix {
	made := *m
	ids, cells, steps := m.axes()
	var part Part
	whole := true
	for axis := range 2 {
		z, n := s.Zoom(ids[axis]), float64(cells[axis])
		const rounding = 1e-4 // URLs contain eight digits
		first, end := math.Floor(z.From/steps[axis]+rounding), math.Ceil(z.To/steps[axis]-rounding)
		if first = max(first, 0); z.From < z.To && first < n && end > first {
			part[axis], part[axis+2] = int(first), int(min(end, n))
		} else {
			part[axis+2] = cells[axis]
		}
		whole = whole && part[axis] == 0 && part[axis+2] == cells[axis]
	}
	if made.Part = part; whole {
		made.Part = Part{}
	}
	return &made
}

// ZoomedInto returns the screen that shows a part of a map.
func (s Screen) ZoomedInto(m *Matrix, part Part) Screen {
	ids, cells, steps := m.axes()
	for axis := range 2 {
		z := Zoom{Chart: ids[axis]}
		if part[axis] > 0 || part[axis+2] < cells[axis] {
			z.From, z.To = float64(part[axis])*steps[axis], float64(part[axis+2])*steps[axis]
		}
		s = s.Zoomed(z)
	}
	return s
}
