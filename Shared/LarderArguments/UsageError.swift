/// An invalid command line; the message is one line that says what to do.
package struct UsageError: Error {
    package let message: String

    package init(message: String) { self.message = message }
}
