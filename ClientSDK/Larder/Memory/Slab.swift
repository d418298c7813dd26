/// Memory for elements by number. Its owner keeps to the numbers that it has, and knows which of them hold something.
///
/// An array would check for both on every access, which is a third of what a hit may cost.
@usableFromInline @safe struct Slab<Element>: ~Copyable {
    @usableFromInline var base: UnsafeMutablePointer<Element>
    @usableFromInline var capacity: Int

    /// Memory that holds nothing yet.
    @inlinable init(capacity: Int) {
        unsafe base = UnsafeMutablePointer.allocate(capacity: max(1, capacity))
        self.capacity = capacity
    }

    /// Memory that holds copies of an element. To be used with what needs no release only.
    @inlinable init(repeating element: Element, count: Int) {
        self.init(capacity: count)
        unsafe base.initialize(repeating: element, count: count)
    }

    /// What it still holds is its owner's to release before.
    @inlinable deinit { unsafe base.deallocate() }

    @inlinable subscript(number: Int) -> Element {
        _read {
            assert(number >= 0 && number < capacity, "A slab was asked for what it does not have.")
            yield unsafe base[number]
        }
        _modify {
            assert(number >= 0 && number < capacity, "A slab was asked for what it does not have.")
            yield unsafe &base[number]
        }
    }

    /// Begins to hold an element under a number that holds nothing.
    @inlinable mutating func fill(_ number: Int, _ element: consuming Element) {
        assert(number >= 0 && number < capacity, "A slab was asked for what it does not have.")
        unsafe (base + number).initialize(to: element)
    }

    /// Gives what a number holds, which then holds nothing.
    @inlinable mutating func empty(_ number: Int) -> Element {
        assert(number >= 0 && number < capacity, "A slab was asked for what it does not have.")
        return unsafe (base + number).move()
    }

    /// Releases what a number holds, when its owner goes.
    @inlinable func release(_ number: Int) { unsafe (base + number).deinitialize(count: 1) }

    /// More memory, into which the first elements are moved.
    @inlinable mutating func grow(to capacity: Int, moving count: Int) {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity)
        unsafe larger.moveInitialize(from: base, count: count)
        unsafe base.deallocate()
        unsafe base = larger
        self.capacity = capacity
    }
}
