package unpack

// protocolVersion tells programs of two builds apart, which meet where a site is
// updated between the two downloads.
const protocolVersion = 1

const (
	packedBytes   = 64 << 10  // of a packed part, the last one may be smaller
	unpackedBytes = 256 << 10 // of an unpacked part
	ahead         = 4         // parts of either kind that are under way at most
)

// mostWaiting is how many messages can wait on either side: the parts, an answer
// for each of the other side's, and the first and the last message.
const mostWaiting = 2*ahead + 2

type kind uint8

const (
	// From the analysis worker.
	begin  kind = iota + 1 // text: the packing's name
	packed                 // bytes
	more                   // an unpacked part was read
	ended                  // no packed bytes follow: the file ends
	broken                 // no packed bytes follow: the file cannot be read on
	// From the unpacker.
	ready    // number: protocolVersion
	took     // a packed part was begun
	unpacked // bytes
	whole    // the unpacked bytes end
	cut      // the packed bytes ended too early
	damaged  // the packed bytes are wrong; text: what the decoder said
	stopped  // what was unpacked before the file broke has been sent
	gone     // the unpacker is no more; text: why. Its carrier says so.
)

type message struct {
	kind   kind
	number int
	text   string
	bytes  []byte
}

// port is one side's end of the connection.
type port interface {
	// post sends m without waiting. Its bytes are copied.
	post(m message)
	// take waits for the next message. Its bytes belong to the receiver until
	// they are given to free.
	take() message
	// free takes memory back that a later message may use.
	free(bytes []byte)
	// close ends the other side, if it is a worker.
	close()
}

// fill reads until p is full or the reader ends.
func fill(read func([]byte) (int, error), p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = read(p[n:])
		n += m
	}
	return n, err
}
