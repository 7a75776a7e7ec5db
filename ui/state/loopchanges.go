package state

// ChangeKind is a kind of change to the code, as the page offers it.
type ChangeKind struct {
	Kind    string // as the command has it
	Words   string
	Example string
	About   string
}

// ChangeKinds are all of them.
func ChangeKinds() []ChangeKind {
	const loops = " Loops go by number, as in 1.2, or as i, j, k …: the outermost, the first in it, and so on."
	return []ChangeKind{
		{"pad", "pad rows", "a=+64", "An array by its name or an address in it, and the bytes that each of its rows is to get more."},
		{"interchange", "interchange loops", "i,j", "Two loops that hold nothing but each other." + loops},
		{"tile", "tile loops", "i=32,j=32", "Loops that hold nothing but each other, and the iterations of a tile." + loops},
		{"align", "align arrays", "64", "A power of two: bytes to whose multiples all arrays move. Or of one array: a=64."},
		{"fuse", "fuse loops", "1.1", "A loop that another one right behind it joins; both run equally often." + loops},
		{"array-of-structs", "array of structures", "x,y", "Arrays of equal elements that become the fields of one array of structures."},
	}
}

// ChangeKindOf gives the kind with the command's name.
func ChangeKindOf(kind string) ChangeKind {
	for _, k := range ChangeKinds() {
		if k.Kind == kind {
			return k
		}
	}
	return ChangeKind{}
}
