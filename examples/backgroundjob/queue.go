package main

import "sync"

// Queue stands for a message broker: it knows bytes, not tenants, and delivers in order. It is safe for concurrent use; the zero value is empty.
type Queue struct {
	mu       sync.Mutex // guards messages
	messages []Message
}

// Message is one delivery of a job.
type Message struct {
	Body     []byte
	Attempts int // how often it was tried before
}

// Push adds a job.
func (q *Queue) Push(body []byte) { q.put(Message{Body: body}) }

func (q *Queue) put(m Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages = append(q.messages, m)
}

// Pop takes the oldest message; ok is false when there is none.
func (q *Queue) Pop() (m Message, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.messages) == 0 {
		return Message{}, false
	}
	m, q.messages = q.messages[0], q.messages[1:]
	return m, true
}

// Repeat delivers the last message once more.
func (q *Queue) Repeat() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.messages); n > 0 {
		q.messages = append(q.messages, q.messages[n-1])
	}
}
