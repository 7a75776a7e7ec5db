package state

// Graph is the blocks of a function and the ways between them, which graph.js draws. It
// is not changed once it is handed over.
type Graph struct {
	ID, Title, Summary string
	Nodes              []GraphNode
	Edges              []GraphEdge
	Selected           int // node; -1: none
}

// GraphNode is a block.
type GraphNode struct {
	Lines []string // as drawn
	About string   // as read out
	Share float64  // of what the function takes
	Never bool     // it does not run
}

// GraphEdge is a way from one block to another.
type GraphEdge struct {
	From, To int
	Text     string  // beside it
	Share    float64 // how thick it is, up to 1
	Never    bool    // it is not taken
}
