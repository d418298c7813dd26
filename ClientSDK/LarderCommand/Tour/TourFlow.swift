/// A path with questions: a step leads to the next one, and a question with the answer "yes" to what is beside it.
struct TourFlow: Sendable {
    struct Step: Sendable {
        let text: String
        /// What follows a question that is answered with "yes"; nil for a step.
        var yes: String?
    }

    let title: String
    let steps: [Step]

    /// The drawing: steps as boxes below each other, what follows "yes" to their right, or below where there is no room.
    var html: String {
        let rows = steps.map { step in
            let box =
                "<div class=\"box \(step.yes == nil ? "neutral" : "warning")\">\(TourPage.escaped(step.text))</div>"
            guard let yes = step.yes else { return "<li>\(box)</li>" }
            return "<li class=\"asks\">\(box)<span class=\"answer-word\">yes →</span>"
                + "<div class=\"box good\">\(TourPage.escaped(yes))</div></li>"
        }
        return "<ol class=\"flow\">\(rows.joined())</ol>"
    }
}

/// A memory tier in the page that the reader fills with reads of their own, step by step.
struct TourTryout: Sendable {
    let title: String
    /// The reads that the page begins with.
    let reads: [String]
    let room: Int

    /// The field, the choice of the policy, and the place for the steps, which the script of the page fills.
    var html: String {
        let policies = [("lru", "read longest ago"), ("lfu", "read least often"), ("fifo", "stored first")]
        let options = policies.map { "<option value=\"\($0.0)\">\($0.1)</option>" }.joined()
        return """
            <div class="tryout" data-room="\(room)"><p class="fields"><label>Reads, in order: <input value="\(reads.joined(separator: " "))" \
            size="40"></label> <label>What leaves first: <select>\(options)</select></label> \
            <button class="back">Back</button> <button class="next">Next</button></p>
            <p class="state" aria-live="polite">This needs scripts.</p></div>
            """
    }

    /// The policies in a few lines: the last of the kept entries is the newest.
    static let script = """
        for (const figure of document.querySelectorAll('.tryout')) {
          const [field, choice, state] = ['input', 'select', '.state'].map(name => figure.querySelector(name));
          let at = 0;
          const show = by => {
            const reads = field.value.split(/\\s+/).filter(word => word);
            at = Math.min(reads.length, Math.max(0, at + by));
            let [kept, hits, last] = [[], 0, 'Nothing was read yet.'];
            for (const key of reads.slice(0, at)) {
              const place = kept.findIndex(entry => entry.key === key);
              if (place >= 0) {
                hits += 1;
                kept[place].uses += 1;
                if (choice.value !== 'fifo') kept.push(kept.splice(place, 1)[0]);
                last = `${key} is read: in memory.`;
                continue;
              }
              last = `${key} is read: not in memory, stored.`;
              if (kept.length === Number(figure.dataset.room)) {
                const least = choice.value === 'lfu' ? Math.min(...kept.map(entry => entry.uses)) : null;
                const victim = least === null ? 0 : kept.findIndex(entry => entry.uses === least);
                last += ` ${kept.splice(victim, 1)[0].key} leaves.`;
              }
              kept.push({ key, uses: 0 });
            }
            const names = kept.map(entry => entry.key).join(' ') || 'nothing';
            state.textContent = `${at} of ${reads.length}. ${last} In memory: ${names}. ${hits} ${hits === 1 ? 'hit' : 'hits'}.`;
          };
          figure.querySelector('.back').onclick = () => show(-1);
          figure.querySelector('.next').onclick = () => show(1);
          field.oninput = choice.oninput = () => show(0);
          show(0);
        }
        """
}
