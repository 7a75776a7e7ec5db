package unpack

// Names returns the compression formats that are decompressed in a worker: all except LZ4.
func Names() []string { return []string{"gzip", "zstd", "xz", "zip", "snappy"} }

// protocolVersion distinguishes builds. The two programs are from different builds if the site was
// updated between their downloads.
const protocolVersion = 1

const (
	packedBytes   = 64 << 10  // size of each compressed part except the last
	unpackedBytes = 256 << 10 // size of a decompressed part
	ahead         = 4         // maximum number of parts in transit in each direction
)

// mostWaiting is the maximum number of messages that can wait on either side: the parts, an answer
// to each part, the first message, and the last message.
const mostWaiting = 2*ahead + 2

type kind uint8

const (
	// Messages from the analysis worker.
	begin  kind = iota + 1 // decompress a stream; text: the name of the compression format
	packed                 // a compressed part, in the field "bytes"
	more                   // a decompressed part has been read, so one more part may be sent
	ended                  // no more compressed bytes follow, because the file has ended
	broken                 // no more compressed bytes follow, because the file cannot be read
	// Messages from the decompressor.
	ready    // the decompressor has started; number: protocolVersion
	took     // the decompressor has started to read a compressed part
	unpacked // a decompressed part, in the field "bytes"
	whole    // the decompressed bytes are complete
	cut      // the compressed bytes ended too early
	damaged  // the compressed bytes are wrong; text: the decoder's error
	stopped  // all bytes that were decompressed before the read error have been sent
	// the decompressor has died; text: the reason. The transport sends this message.
	gone
)

type message struct {
	kind   kind
	number int
	text   string
	bytes  []byte
}

// port is one end of the connection.
type port interface {
	// post sends m without waiting. It copies the bytes of m.
	post(m message)
	// take waits for the next message. The message's bytes belong to the receiver until it calls free.
	take() message
	// free returns the memory of a message, which is reused for later messages.
	free(bytes []byte)
	// close ends the other side if the other side is a worker.
	close()
}

// fill calls the function "read" until the slice p is full or the function returns an error.
func fill(read func([]byte) (int, error), p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = read(p[n:])
		n += m
	}
	return n, err
}
