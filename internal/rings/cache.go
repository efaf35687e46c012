package rings

import "container/list"

// cache keeps the arcs of chunks within a budget of bytes; the ones used least
// recently go first. It is not safe for concurrent use.
type cache struct {
	budget  int64
	used    int64
	order   list.List // of *entry, the latest used first
	entries map[string]*list.Element
}

type entry struct {
	id   string
	arcs arcs
	size int64
}

// What an entry takes beside the bytes of its IDs, about: the entry, its list
// element and its share of the map; and an arc.
const (
	entryBytes = 200
	arcBytes   = 24
)

func (c *cache) get(id string) (arcs, bool) {
	e, ok := c.entries[id]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*entry).arcs, true
}

// put adds a chunk that is not there. One that is larger than the budget is
// not kept.
func (c *cache) put(id string, a arcs) {
	size := int64(entryBytes + len(id) + arcBytes*len(a))
	for _, arc := range a {
		size += int64(len(arc.to))
	}
	if size > c.budget {
		return
	}
	c.entries[id] = c.order.PushFront(&entry{id, a, size})
	c.used += size
	for c.used > c.budget {
		last := c.order.Back()
		old := c.order.Remove(last).(*entry)
		delete(c.entries, old.id)
		c.used -= old.size
	}
}

func (c *cache) clear() {
	clear(c.entries)
	c.order.Init()
	c.used = 0
}
