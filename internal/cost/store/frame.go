package store

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	// frameHeader is the size of a frame's header: length and checksum, 32 bits each.
	frameHeader = 8
	// maxFrame limits the size of a frame, so that a damaged length cannot fill the memory.
	maxFrame = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends a payload with its length and its checksum. A payload must not be empty: a file
// whose end is filled with zeros after a power failure would otherwise have valid frames there.
func appendFrame(data, payload []byte) []byte {
	data = binary.LittleEndian.AppendUint32(data, uint32(len(payload))) //nolint:gosec // below maxFrame
	data = binary.LittleEndian.AppendUint32(data, crc32.Checksum(payload, castagnoli))
	return append(data, payload...)
}

// readFrames returns the payloads of the intact frames at the beginning of data, and the number of bytes
// after them. A writer that was killed leaves such a torn tail.
func readFrames(data []byte) (payloads [][]byte, torn int) {
	for len(data) >= frameHeader {
		length := int(binary.LittleEndian.Uint32(data))
		if length == 0 || length > maxFrame || len(data)-frameHeader < length {
			break
		}
		payload := data[frameHeader : frameHeader+length]
		if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
			break
		}
		payloads = append(payloads, payload)
		data = data[frameHeader+length:]
	}
	return payloads, len(data)
}
