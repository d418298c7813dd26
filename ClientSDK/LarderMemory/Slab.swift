/// Uninitialized memory for elements by number. The owner keeps within bounds and knows which numbers are initialized.
///
/// An array would check both on every access, which is a third of the cost of a hit.
@usableFromInline @safe struct Slab<Element>: ~Copyable {
    @usableFromInline var base: UnsafeMutablePointer<Element>
    @usableFromInline var capacity: Int

    /// Allocates uninitialized memory.
    @inlinable init(capacity: Int) {
        unsafe base = UnsafeMutablePointer.allocate(capacity: max(1, capacity))
        self.capacity = capacity
    }

    /// Allocates memory with copies of an element. For trivial types only.
    @inlinable init(repeating element: Element, count: Int) {
        self.init(capacity: count)
        unsafe base.initialize(repeating: element, count: count)
    }

    /// The owner must release all elements before.
    @inlinable deinit { unsafe base.deallocate() }

    @inlinable subscript(number: Int) -> Element {
        _read {
            assert(number >= 0 && number < capacity, "The slot number is out of the bounds of the slab.")
            yield unsafe base[number]
        }
        _modify {
            assert(number >= 0 && number < capacity, "The slot number is out of the bounds of the slab.")
            yield unsafe &base[number]
        }
    }

    /// Initializes the element of a number that is uninitialized.
    @inlinable mutating func fill(_ number: Int, _ element: consuming Element) {
        assert(number >= 0 && number < capacity, "The slot number is out of the bounds of the slab.")
        unsafe (base + number).initialize(to: element)
    }

    /// Moves the element of a number out.
    @inlinable mutating func empty(_ number: Int) -> Element {
        assert(number >= 0 && number < capacity, "The slot number is out of the bounds of the slab.")
        return unsafe (base + number).move()
    }

    /// Releases the element of a number, when the owner is destroyed.
    @inlinable func release(_ number: Int) { unsafe (base + number).deinitialize(count: 1) }

    /// Allocates more memory and moves the first elements into it.
    @inlinable mutating func grow(to capacity: Int, moving count: Int) {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity)
        unsafe larger.moveInitialize(from: base, count: count)
        unsafe base.deallocate()
        unsafe base = larger
        self.capacity = capacity
    }
}
