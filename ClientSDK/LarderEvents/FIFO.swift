/// A queue. Adding and removing cost amortised constant time.
@usableFromInline package struct FIFO<Element> {
    /// Removed elements are nil; `head` is the index of the first that is not.
    @usableFromInline var elements: [Element?] = []
    @usableFromInline var head = 0

    @inlinable package init() {}

    @inlinable package var count: Int { elements.count - head }

    @inlinable package var isEmpty: Bool { head == elements.count }

    @inlinable package var first: Element? { head < elements.count ? elements[head] : nil }

    @inlinable package mutating func append(_ element: Element) { elements.append(element) }

    @inlinable package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let element = elements[head].take()
        head += 1
        if head == elements.count {
            elements.removeAll(keepingCapacity: true)
            head = 0
        } else if head > 64, head > elements.count / 2 {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    @inlinable package mutating func removeAll() {
        elements = []
        head = 0
    }
}

extension FIFO: Sendable where Element: Sendable {}
