package pgjournal

import "slices"

// keyframeShare is about how many bytes a record takes. The next keyframe comes only after as many
// bytes of records as a keyframe has.
const keyframeShare = 256

// with returns the snapshots with one more, in order.
func with(kept []saved, one saved) []saved {
	i, _ := slices.BinarySearchFunc(kept, one.seq, func(s saved, seq int64) int { return int(s.seq - seq) })
	return slices.Insert(slices.Clone(kept), i, one)
}

// room reports whether no keyframe is near the record seq, for one of that size.
func (o Options) room(kept []saved, seq, size int64) bool {
	away := max(o.KeyframeEvery, size/keyframeShare)
	before := int64(0)
	for _, s := range kept {
		if s.seq > seq {
			return seq-before >= away && s.seq-seq >= away
		}
		before = s.seq
	}
	return seq-before >= away
}

// replaced returns the seqs of the snapshots to remove when a newer one comes. The last one becomes
// a keyframe if there is room for it.
func (o Options) replaced(kept []saved) (drop []int64) {
	if len(kept) == 0 {
		return nil
	}
	frames, newest := kept[:len(kept)-1], kept[len(kept)-1]
	if !o.room(frames, newest.seq, newest.size) {
		return []int64{newest.seq}
	}
	return o.thinFrames(kept)
}

// thin returns the seqs of the keyframes to remove. The newest snapshot is not a keyframe.
func (o Options) thin(kept []saved) (drop []int64) { return o.thinFrames(kept[:len(kept)-1]) }

// thinFrames removes keyframes until the others fit the limit. Each time it removes the one whose
// neighbors are nearest to each other. The last one stays unless it alone is too large.
func (o Options) thinFrames(frames []saved) (drop []int64) {
	frames = slices.Clone(frames)
	sum := int64(0)
	for _, s := range frames {
		sum += s.size
	}
	for sum > o.KeyframeBytes && len(frames) > 0 {
		at, gap := 0, int64(1)<<62
		for i := range frames[:len(frames)-1] {
			before := int64(0)
			if i > 0 {
				before = frames[i-1].seq
			}
			if now := frames[i+1].seq - before; now < gap {
				at, gap = i, now
			}
		}
		drop = append(drop, frames[at].seq)
		sum -= frames[at].size
		frames = slices.Delete(frames, at, at+1)
	}
	return drop
}
