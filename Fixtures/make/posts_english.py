"""What people post in English: openings and continuations by theme, posts that stand alone, and talks across posts.

Any opening of a theme may be followed by any continuation of it, or stand alone.
"""

THEMES = {
"hike": ("""
Five hours up, forty minutes of view, three hours of knees complaining.
Lost the path twice and found the better valley both times.
The hut warden remembered us from last year, and what we had ordered.
Met exactly two people today and one of them was a goat.
New boots, first blister, no regrets yet.
Snow still lying in the gully at 1,800 m, in May.
We turned round two hundred metres below the top.
There is a bench up here that nobody has any business carrying this far.
Started in fog so thick that we navigated by cowbells.
My father did this ridge in 1974 with a canvas rucksack and a salami.
Taught my niece to read contour lines and now she corrects me.
The waymarks have been repainted and the old ones left, so there are now two opinions.
Slept under the overhang and woke to rain everywhere except on us.
Eleven marmots before breakfast.
The spring behind the chapel is running again.
Descended the wrong side and took a bus home with six hens.
First overnight alone.
Somebody has built a library box at the saddle.
""", """
I had packed for every weather but that one.
Tea from the flask tasted like a reward.
The map says 14 km; my legs have filed an objection.
Next time we start an hour earlier, as we say every time.
Left a note in the summit book for whoever comes next.
If you go, take the eastern path: the bridge on the other one is gone.
My phone had no signal for six hours and I did not miss it.
Legs like wood, head like a swept room.
I will be showing these pictures to people who did not ask.
We ate the emergency chocolate. It was not an emergency.
Anyone want to join on Sunday? There is one seat in the car.
The dog slept for fourteen hours afterwards.
Still finding grass seeds in my socks.
Not a single cloud, and naturally no sunscreen.
""", "#hiking #mountains #slowdays"),
"sea": ("""
Water at 13 degrees, which is a number and then it is an experience.
The harbour was so flat this morning you could have written on it.
Counted seventeen sails from the breakfast table.
The ferry was late because of a whale. Best announcement I have ever heard.
Swam to the second buoy and back.
Tide table said 6:12, sea said 6:30, sea won.
Repairing nets with my uncle, who talks only while his hands are busy.
A seal followed the rowing boat for half a mile.
The lighthouse is open to visitors two days a year, and today was one.
Whole beach to ourselves, apart from a very confident gull.
Storm took the lower steps of the jetty.
Found a bottle with a message: it was a receipt.
Bioluminescence last night. Every stroke of the oar lit up.
Learned the bowline again, for the fourth summer running.
The new varnish is on and it has decided to rain.
Sardines were the size of pencils and just as straight on the grill.
Low tide uncovered the old slipway that my grandmother always spoke of.
First swim of the year!
""", """
Salt in everything, including the book.
You could smell the rain coming ten minutes before it came.
I have thoughts about gulls and none of them are printable.
The water kept the colour for perhaps a minute.
Back on dry land and still swaying.
My hands will smell of tar until Tuesday.
Worth getting up at five for.
We said one more hour and stayed four.
The old men on the pier gave us a score. It was not high.
Anyone know what these blue ones are called?
Somebody please tell me where the year went.
I would like this to be my commute.
Brought home a pocket full of shells, as if I were seven.
""", "#sea #harbour #coldwater"),
"night": ("""
Saw the rings of Saturn through a tube I built from a drainpipe.
Clear until half past one, then the fog took everything.
The Milky Way over the ridge, and not one streetlamp.
Forty people came to our public evening and nobody wanted to leave.
Two meteors in ten minutes, both while I was looking for the other glove.
The space station crossed from end to end of the sky in four minutes.
Tracking mount works at last.
Turned off the porch light and waited twenty minutes.
Jupiter and three of its moons, through ordinary binoculars.
My neighbour has agreed to put a shade on that lamp.
A night so still that you could hear the river change its mind.
Noctilucent clouds in the north, electric blue, for almost an hour.
An hour of exposures, of which nine minutes are usable.
The dome motor squeaks in F sharp.
My daughter asked where the sky stops, and I am still preparing my answer.
Full moon, so we gave up on galaxies and drew craters.
""", """
The cold does not matter until you stop moving.
Every photo I took of it is worse than the memory.
Same time tomorrow, if the forecast is honest.
I had forgotten how many there are.
We passed the thermos along in the dark and nobody spilled.
A child said “it looks fake”, which is the finest review we have had.
Bring a red torch and something warm for your feet.
If anyone near here wants to look through it, come by.
Going to bed now. Good morning to everybody.
The dew heater was worth every cent.
I needed to feel small for an hour, and it worked.
""", "#astronomy #darksky #nightsky"),
"city": ("""
They have taken the scaffolding off the old post office and it is pink. Pink!
The number 6 tram took a detour and I saw a square that I had never seen.
There is a man who plays the saw under the railway bridge, and he is very good.
The bakery on the corner has closed after sixty-one years.
Somebody has knitted a scarf for the statue again.
Counted nine languages on one bus this morning.
The rooftops after rain, just before the lights come on.
A whole street without cars for one Sunday, and it filled with chairs.
Our stairwell smells of seven different dinners at half past six.
I have lived here for nine years and found a new shortcut today.
The swifts are back over the courtyard.
Queue round the block for a shop that sells one kind of bun.
The city council has asked us where we want benches. Everywhere, please.
Power cut on our street, so everyone came out and talked.
Last tram, empty, all windows open.
My window now faces a crane named Matilda. It is written on the side.
The fountain is on again, so summer is official.
Walked home instead of riding, on purpose, the long way.
""", """
I will miss it, and I was only ever half paying attention.
Nobody looks up. Look up.
If you know the story behind it, I would love to hear.
Cities are mostly a matter of good corners.
It took me twice as long and I arrived in half the mood.
The light lasted about as long as a song.
My grandmother would not recognise it, and then she would.
I took one picture and then just stood there.
More of this, less parking.
There should be a word for that particular blue.
The pigeons have opinions.
An old lady told me that it was always like this, before.
""", "#citylife #dusk #windows"),
"cooking": ("""
The bread rose. I repeat: the bread rose.
My sourdough starter is called Clint Yeastwood and he is not well.
Cooked for eleven with four plates and a lot of confidence.
Grandma’s recipe says “flour, until it is enough”.
I have been making this soup wrong for ten years and I prefer it wrong.
Burnt the onions, called it caramelised, got a compliment.
Twelve jars of apricot jam and one small kitchen fire.
Tried to halve the recipe and halved everything but the chilli.
Made dumplings with the neighbours: 140 folded, 31 burst.
There is nothing in the fridge but mustard and optimism.
The secret was to leave it alone for two days.
Peeled chestnuts for an hour. Got eight.
First tomatoes of the year, still warm from the balcony.
My son has decided that he eats only round food.
Pickled everything that would hold still.
A friend brought saffron in a matchbox, like contraband.
Every pan in the house is dirty and I am happy.
Jollof, but in the oven. Before you shout: try it.
""", """
Seconds were requested, and thirds.
Butter fixes more than it should.
Do not skip the lemon.
Recipe in the replies if anybody wants it.
The smoke alarm joined in for the chorus.
Served with rice, because I am not a monster.
I wrote it down this time.
The smell has gone all the way up the stairs and the neighbours are being very friendly.
Next week: the same, but on purpose.
I measured nothing and would do it again.
We ate it standing up.
Leftovers are now worth more than money in this flat.
""", "#homecooking #kitchen #bread"),
"garden": ("""
The slugs have voted, and they were in favour of the lettuce.
First rose open this morning, three weeks early.
Planted forty bulbs and have already forgotten where.
The bees found the lavender within the hour.
My compost heap is steaming like a small volcano.
A toad has moved in beneath the watering can.
The fig I was told would never survive has eleven figs.
Swapped two courgettes for a bag of plums over the fence.
It is the week when you cannot give courgettes away.
Repotted everything; there is soil in my tea.
The wisteria took six years and then all of May.
Somebody’s cat has chosen the seed bed.
The allotment committee met for three hours about the gate.
Pruned the pear tree with a book in one hand.
The bean rows are up, crooked as my teeth.
A wren is nesting in the peg bag, so we are not drying washing until July.
Sowed poppies along the tram stop. Do not tell anyone.
Forty millimetres of rain and every weed stood to attention.
""", """
I told it that it was beautiful. You have to.
Patience, says my neighbour, who has been saying so since 1988.
Knees of a ninety-year-old, heart of a seed catalogue.
Now it needs nothing but water and for me to keep out of the way.
Cuttings available for anyone who will carry them.
I sat down “for a moment”. That was two hours ago.
Does anyone know what is eating it?
Half for us, half for the blackbirds. That seems to be the deal.
Hands like bark. Very happy bark.
Nothing else I do has results this slowly or this surely.
There is no such thing as enough pots.
""", "#garden #allotment #growyourown"),
"books": ("""
Finished it at two in the morning and then sat in the dark for a while.
Found a train ticket from 1983 as a bookmark, Vienna to Trieste.
Reading the same novel as my father, by post, one chapter a week.
Gave up at page 90. Life is short and so was its plot.
The library has forgiven all late returns. I am going in with a suitcase.
Our book club argued for an hour about one comma.
I bought it for the cover and stayed for the footnotes.
A child at the reading hour asked if the dragon had a pension.
Rereading the one that I loved at seventeen, carefully, like visiting an old school.
The translator has a name, and it should be on the cover.
My to-read pile has begun to lean.
Somebody has written “NO!” in the margin of page 212 and they are right.
A second-hand shop, a wet afternoon, nowhere to be.
Three people on this train are reading on paper and we have all noticed each other.
I lent it out in 2016 and today it came home.
The audiobook reader does all the voices, even the horse.
""", """
I have no idea what to read after this.
Recommend me something short and strange, please.
If you have read it, come and talk to me.
The last page is worth all the others.
I keep hearing the narrator when I do the washing-up.
It made me miss a place where I have never been.
I underlined half of it and now the underlining means nothing.
Four stars, and the fifth is for whoever set the type.
Not for everybody. For me, though.
I closed it and rang my sister.
Tea went cold twice.
""", "#books #reading #library"),
"code": ("""
Three days of debugging; the fix was one character, and it was a comma.
Deleted 2,000 lines today and everything still works, which raises questions.
The build is green. Nobody touch anything.
My code review said “why?” on one line and I had to think about my life.
Found a comment from 2014: “temporary, remove next week”. It was mine.
Wrote the test first for once and felt insufferable all afternoon.
It is always the time zone.
Explained recursion to my mother and she explained it back better.
We turned the cache off and it got faster.
The bug disappears when I look at the logs. I am thinking of charging it rent.
Renamed one variable and finally understood the function.
On call this week: two pages, both at dinner.
Our slowest query went from nine seconds to eleven milliseconds with one index.
The intern asked why we do it that way. Nobody knew.
Somebody has put emoji in the commit messages and now we all have to 🚀
Migrated the database over lunch, ate nothing, slept well.
The documentation is wrong, and I wrote the documentation.
Pair-programmed for four hours and learned eleven shortcuts.
""", """
I would like to thank the rubber duck.
Wrote it up here so that I find it next year: https://blog.example.org/notes
And yes, it was DNS.
Tomorrow me can deal with the rest; tomorrow me is smarter anyway.
Ask me again when the graphs have been flat for a week.
The error message said exactly this, and I did not read it.
I closed forty tabs and felt lighter.
Small steps, each one boring: that is the whole trick.
Somewhere there is a log line laughing at me.
It works, and worse, I know why.
Friday, so I am going to leave the deploy button alone.
""", "#programming #debugging #til"),
"cycling": ("""
Headwind out, headwind home. Explain that.
A hundred kilometres before lunch, mostly downhill if you squint.
Puncture number three this week, same wheel, same pothole.
The new bike lane ends in a hedge.
Rode to work in the rain and arrived feeling like a hero or a towel.
Found the squeak. It was my shoe.
Climbed the pass behind a postman who was whistling.
A tandem with a cello on the back overtook me.
Replaced the chain and it is a different machine.
My odometer turned 10,000 beside a field of cows. They were calm about it.
The group ride split at the bakery, as usual.
Taught a colleague to patch a tube in the office corridor.
Cobbles for eleven kilometres; my fillings have moved.
Sunrise over the canal, no one about but herons.
Cargo bike report: two children, one cake, zero losses.
""", """
Coffee stop was longer than the ride.
Legs empty, head empty, perfect.
Whoever invented mudguards deserves a statue.
I should have eaten before the hill and not after.
Route here if you want it: https://rides.example.org/r/4417
We waited at the top. It was a matter of honour.
The descent made up for everything.
I am told there are other hobbies.
Somebody had chalked “nearly” on the last bend.
No data, no camera, just round and round until dark.
""", "#cycling #bikes #commute"),
"music": ("""
Choir rehearsal ran over because nobody wanted to stop on that chord.
Bought a second-hand accordion and an apology card for the neighbours.
The busker outside the station knows exactly one song and plays it superbly.
My old band met for the first time in twelve years. The drummer still counts us in wrong.
Restrung the guitar and it sounds ten years younger than me.
Heard a piece last night with four minutes of silence in it, and a cough became the solo.
Digitising my uncle’s tapes: 1979, highlife, somebody laughing between songs.
First lesson at fifty-three. The teacher is twenty-four and very kind.
The viola section would like it known that we were together.
Vinyl night at ours: bring one record and defend it.
Played in a stairwell because of the echo, and doors began to open.
That bass line has been in my head since Tuesday.
The organist let us climb up behind the pipes.
My daughter’s recorder concert: thirty children, one tempo each.
Sang in the car, window down, red light, full tram beside me. No regrets.
""", """
I have goosebumps, and I was only turning pages.
Volume is not the point, but it helps.
The whole row was crying and pretending not to.
Listen to it on something better than a phone.
Same again on Thursday, all voices welcome.
There is a recording, but you had to be there.
Practise slowly, says everybody who can play fast.
My fingers hurt in a good way.
I want that played at my funeral, and at several breakfasts before.
Eleven minutes and not one too many.
""", "#music #nowplaying #livemusic"),
"pets": ("""
The cat has discovered printing.
Dog met a hedgehog. Both have updated their views.
Fostering three kittens “for the weekend”. It is the fifth weekend.
He was at the vet for his weight and stole a biscuit from the desk.
Our parrot has learned the sound of the doorbell, and uses it.
Somebody in this house has eaten a candle, and she is looking at me very innocently.
The tortoise woke up today, nodded, and went back to sleep.
Rescue dog, day ten: he wagged.
The cat sat on my keyboard and improved the paragraph.
Lost: one greyhound, for six minutes, in a field with one rabbit.
Two collies, one stick, no agreement.
She is seventeen now and still jumps for the window sill. I have built her a step.
Bath day. We are all wet, except for the dog.
My neighbour’s hen visits at four, every day, and expects to be let in.
The kittens have found the yarn drawer.
""", """
I am not in charge here and never was.
Pictures upon request, or without one.
He is asleep now, like a criminal.
The vet says everything is fine. The vet has not met him at night.
If he goes quiet, that is when you look.
Yes, he has his own blanket, and yes, it used to be mine.
Eleven out of ten.
She forgave us at once, which is more than we deserved.
Somebody please tell her that she is small.
""", "#dogs #cats #goodboy"),
"trains": ("""
The night train was forty minutes late and nobody minded, because of the moon.
Changed at a station with one bench, one dog and no roof.
Fourteen countries, one rucksack, one slightly broken zip.
The conductor gave my boy his whistle for one glorious minute.
Sixth hour. The dining car has run out of everything but soup.
A paper ticket, punched with a star-shaped hole.
Somebody left a chess board set up in the waiting room and strangers move one piece each.
The timetable has changed and I am in mourning.
We crossed the viaduct at exactly walking pace.
My seat neighbour is knitting a jumper against the distance: one sleeve to the border.
Missed the connection and found the best bakery of the trip.
Old carriages today, with windows that open.
Border at dawn, everyone half asleep, stamps like heartbeats.
Found the signal box where I worked from 1971; it is a café now.
Window seat, left side. Trust me about the left side.
""", """
Slow is the point.
I would take the same train back just for that curve.
Arrived with a stiff neck and two new friends.
The announcement apologised in three languages and meant it in none.
My book stayed shut the whole way.
Delay repaid in cherries, by the lady opposite.
There is no better office than a table and a moving window.
If you know, you know.
Next one leaves in an hour and I hope it is late.
""", "#trains #slowtravel #nighttrain"),
"craft": ("""
The kiln went to 1,280 and nothing exploded.
Ripped out the whole sleeve, for the third time, in good humour.
Sharpened every chisel in the shop and now I am afraid of the drawer.
Learned to mix one green properly this week.
The loom is warped: 480 threads, two evenings, one podcast about bees.
I drew the same cat forty times and on the forty-first she looked back.
A customer asked for “the wonky one”. They are all the wonky one.
Bound a notebook with thread from my grandmother’s sewing box.
Planed the first strake today and it fits by the thickness of a hair.
Indigo day: my hands are the colour of Tuesday.
Glue is a matter of faith.
Teaching eight beginners to throw pots, and all the walls are grey now.
The letter g took me the entire week.
Found the crack after the glaze. One always does.
Printed two hundred cards on the old press, and the last twenty are good.
""", """
Measure twice, cut once, swear once anyway.
It is not perfect, and that is how you know it was me.
The mistake stays in. It is the best part.
Ten more and I will understand it.
Will be at the market on Saturday with whatever survives.
My back would like a word.
I lost the afternoon in the nicest possible way.
Somebody should have told me how quiet this is.
There is sawdust in my tea, and it is fine.
""", "#handmade #studio #slowcraft"),
"photo": ("""
One frame left on the roll, and I carried it around for a week.
Waited two hours for the light, and it came while I was changing lens.
The picture I like best is the one I took by accident.
Scanned a box of negatives from the flea market: someone’s summer, 1961.
Fog, pylons, one crow. I could not have arranged it.
Shooting only at 50 mm this month, with my feet as the zoom.
A stranger asked me to take his portrait and then to keep it.
Developed in the bath with the door shut and a towel along the gap.
The reflections in the puddles were better than the street.
Everything I shot today is crooked and I think I mean it.
Drew a map of all the places where I have seen that colour.
Made a chart of the light in our kitchen through the year.
""", """
Straight from the camera, no edits.
The first one is for the shape, the second for the mood.
Which would you keep?
Printing it large, if the wall agrees.
I should carry less and look more.
It looked like nothing until I turned it round.
No people in it, and yet it is about them.
The grain is real.
Taken from the bus, naturally.
""", "#photography #film #light"),
"weather": ("""
Four seasons before lunch.
The forecast said “bright intervals”, and we have had one: it was the lightning.
Hail the size of chickpeas, for exactly a minute.
Wind from the south-east, so everyone is cross.
The barometer fell off the wall, which I take as a reading.
First morning that smells of summer.
Fog horn since five o’clock, a very large and patient cow.
Thirty-four degrees in the flat and the fan has given up.
A rainbow landed in the supermarket car park.
Rain on the tin roof all night: best sleep of the year.
Saharan dust on every car, and children writing in it.
It snowed in April and the blossom did not care.
Clouds today like somebody had brushed them one way.
Thunder, far away, like furniture being moved upstairs.
""", """
I have put the washing out, so you know what happens now.
Socks: wet. Spirits: undecided.
Tomorrow the same, says the radio, but with more of it.
The cat blames me.
We opened every window and just listened.
I own four jackets and was wearing none of them.
Stay in, put the kettle on.
It lasted ten minutes and everyone on the street will speak of it for a week.
Perfect, as long as you do not need to be anywhere.
""", "#weather #rain #sky"),
"market": ("""
The apricot man is back, and so is the queue.
Haggled for a teapot, lost, paid more, was happy.
Cherries at last, and the first bag did not make it home.
The fishmonger asked after my mother before asking what I wanted.
Bought a lamp shaped like a heron. I do not wish to discuss it.
Six kinds of plantain on one table and a lecture with each.
Everything was two for one, except for the advice, which was free.
Found my own old chair at the flea market, dearer than new.
The cheese lady cut me a piece “to think about”.
Saffron, indigo, mangoes: the whole stall was one colour chart.
Went for onions. Came back with a fern, a hat and no onions.
The honey this year is dark, almost like molasses.
""", """
Cash only, and somehow I had it.
I carried it home like a baby.
Get there before nine or do not bother.
My bag broke and four strangers chased oranges down the hill 🍊
She threw in a bunch of parsley, as they do.
Nobody needs this much coriander. I have this much coriander.
Prices are up, tempers are not.
That was supper decided.
""", "#market #saturday #local"),
"football": ("""
Lost 4–3 in the last minute and I have never enjoyed a game more.
Under-nines training: twenty-two children, one ball, no positions.
Our keeper is a dentist and played like one.
My hamstring has handed in its notice.
Floodlights, drizzle, eleven spectators, two of them dogs.
He scored from the halfway line and then apologised.
Our pitch floods at the north end, so we attack that way second half.
The referee was my geography teacher. We behaved.
Forty years of the same seat, and today they replaced the seat.
Five-a-side at six in the morning because it is the only hour with a pitch.
A nil–nil for people who really like football.
We signed a left back! It is my cousin.
""", """
Next week we win. I say so every week, and one week I shall be right.
The half-time oranges remain undefeated.
My voice is gone.
Nobody was hurt, if you do not count pride.
Same boots since school, and it shows.
We had a plan until kick-off.
The goal was offside, but it was beautiful.
Ice bath, then dancing.
""", "#football #sundayleague #matchday"),
}

# Posts that are whole as they are.
ALONE = r"""
Rain.
At last!
Good morning, everyone ☀️
Home.
We have a date 💍
Guess who passed 🎓
Coffee first.
Never again. (Again on Friday.)
It’s a girl 👶🏽
Twelve years today. 👩🏾‍❤️‍👨🏼
Does anybody else hear the bells?
Moving day 📦📦📦
Small victories.
New glasses. The trees have leaves, individually!
I have decided to like Mondays. Day one.
Can confirm: the paint was wet.
Typing this from a hammock, and I intend to remain here.
Every lost glove finds its fence.
Lost cat found. She was in the wardrobe, and has been thinking about us.
To whoever left the umbrella on the 14 bus: it is at the desk, it is lovely, and we have named it.
Today I learned that a group of flamingos is called a flamboyance, and I refuse to check.
Public service announcement: drink some water, ring your mother, back up your photos.
My phone suggested that I take a break from my phone. We are both considering it.
Somebody at the next table has just said “the otters are fine, it’s the paperwork”, and left.
Four words I love: the kettle is on.
Is it too late to become a lighthouse keeper? Asking for me.
Ten years ago today I arrived in this city with two bags and a wrong address.
Ordered one screw. It came in a box the size of a bread oven. 📦
The family group chat has discovered stickers 👨‍👩‍👧‍👦 Send help.
My father, on video call, shows us the ceiling of his living room. It is in good condition.
Our street has a new baby, a new bakery and a new pothole, and we are proud of all three.
“Are you lost?” asked the small girl, with great authority. I was.
“It’s not a mess, it’s a sequence.” — my flatmate, about the kitchen
“You’ll understand when you’re older,” said my son, who is six.
Overheard in the lift: “He didn’t ghost me, he’s a plumber.”
Sign at the swimming pool: NO RUNNING, NO DIVING, NO SINGING. What happened here?
The lift is out of order, and the whole building has calves like cyclists.
My plan for today:\n1. get up\n2. coffee\n3. see above
Things in my coat pocket:\n– a conker\n– three receipts\n– somebody else’s key\n– spring
Roses are red,\nthe milk has gone off,\nthe poem ends here.
To do:\n☑️ buy stamps\n☑️ write letter\n☐ find out where letter boxes have gone
Dear upstairs neighbour,\nit is a beautiful piece. You have nearly got it.\nYours, downstairs
Q: How is the new job?\nA: There is a plant. I am responsible for the plant.
Packing list for three days: seven pairs of socks, no toothbrush, a novel of 900 pages. Every time.
I asked the baker what was fresh and he said “my son”. Bought two rolls and gave advice.
I told the self-checkout that there was no unexpected item. We agreed to differ.
Forty-one today. Blew out the candles in a single breath and had to sit down 🎂
Voting done, sticker on, dog photographed outside the polling station. Democracy complete. 🗳️🐕
We planted a tree for every child born in the street this year: three trees, one of them twins.
Reminder that the library lends out drills, tents, a sewing machine and, since May, a telescope. https://library.example.org/things
If you are within sight of a window, go and look at the moon right now. I’ll wait.
The school has asked me to talk about my job for ten minutes. The children had questions for fifty, mostly about snakes. I work in insurance.
Somebody in our building has started leaving tomatoes outside every door. No note, no name. I know who it is (hello, @vera) and I shall say nothing.
Dear @quinn, your recommendation has cost me one night’s sleep and made me miss my stop. Thank you.
I’d like to report a miracle: all the containers in my kitchen have lids, and all the lids have containers.
My grandmother was born in a house without electricity, and this morning she sent me a voice message of eleven seconds in which she breathes and then says “is it on?”. I have listened to it nine times and I shall keep it for as long as I have a telephone.
I used to think that I disliked mornings. It turns out that what I disliked was the alarm, the hurry and the cold bathroom floor. Take these away and a morning is the best room in the house: nobody in it yet, the light coming in sideways, and the whole day still leaning against the wall, unopened.
A thing that I did not expect about learning a language at sixty: you get to be funny again by accident. Today I told the pharmacist that I had been married to a headache since Sunday. She said that she knew the type. We laughed so much that a man in the queue began laughing too, and he hadn’t even heard it.
We sold the car in January and I’ve been keeping notes. Rides on the bus: 212. Conversations on the bus that I would otherwise not have had: about forty. Times I was properly soaked: six. Times I missed the car: two, both of them involving a wardrobe. Money saved: enough for the night train to the sea, with a bed, and breakfast on a tray.
Advice from the woman who repaired my watch: “Do not keep the good one in a drawer. Things that are meant to go, stop when they are kept safe.” I’ve been wearing it to do the washing-up, and I have also, for reasons that I cannot quite explain, booked a singing lesson.
I found out today that the man who has been sweeping the station steps each morning for as long as I can remember isn’t employed by anyone. He lives opposite. He said: “I look at them all day, so I thought I’d do my half.” I asked who does the other half. He handed me the broom 🧹
Spent the day at the records office looking for my great-grandfather. Found his signature on a petition for a footbridge, dated 1911, between a baker and a “widow, laundress”. Walked to the river afterwards. The bridge is there. I crossed it twice, for him and for the laundress.
There are two kinds of people in our office kitchen: those who leave exactly one biscuit, and those who eat it. I’ve been the second kind for eleven years, and today somebody left me a note upon the last one: “We know. Enjoy.” I have never felt so seen 🍪
My daughter’s teacher asked them to draw “something that lasts”. There were mountains, hearts, a diamond. She drew the queue at the post office. I have framed it.
After nine months of emails, three forms, two inspections and one very stern phone call, our courtyard is allowed to have a table. One table. It came on Thursday. By Saturday it had a cloth, a chess board, eleven people and a birthday. I do not know whose.
On the bus a teenager gave up her seat to an old man, who gave it to a pregnant woman, who gave it to a boy with a cast, who looked at the teenager and said “do you want to sit?”. Nobody sat. We all got off at the same stop, smiling like fools.
My neighbour is ninety-four, and every evening at seven she plays one hymn on a piano that has not been tuned since the moon landing. For two years I thought of it as noise. Last week she was in hospital, and at seven the whole staircase stood about with its doors open, pretending to look for keys. She is back since this morning. At seven we all sat upon the stairs, eleven of us and a dog, and she played it twice. Afterwards she leaned out and asked, rather sharply, whether nobody here had anything to do. We had not. It was the best concert that I have been to this year, and I include the ones with tickets 🎹
How to repair a chair, according to my grandfather: look at it for a day. Sit on it, carefully, and listen to where it hurts. Take apart only what is already loose. Clean off the old glue, all of it, also where nobody will see. Dry-fit. Glue, clamp, wipe, wait. Waiting is the main part. Do not sit on it the next day, even if it says that it is ready. Then put it where people sit, not where people look. I have followed this for chairs, two friendships and one allotment committee, and only the committee still wobbles.
"""

# Talks across posts: «who: text», one post a line; a blank line ends a talk. {0}, {1} … stand for the handles of those who take part.
TALKS = """
0: Does anyone have a sourdough starter to spare? Mine has gone to a better place.
1: @{0} I have two jars and can part with the louder one. It smells of apples when it is happy.
0: @{1} You are a saint. I shall call it Lazarus.
1: @{0} Feed it twice a day for the first week, and talk to it. The talking is for you.

0: Which telescope for a ten-year-old who will not stop asking about Saturn?
1: @{0} None yet! Good 8×42 binoculars and a blanket. If she is still asking in winter, a small reflector on a table mount.
2: @{0} What @{1} says. And our public evenings are every second Friday, bring her along.
0: @{1} @{2} Binoculars ordered, blanket found, child asleep. Thank you both.

0: Unpopular opinion: pineapple belongs on pizza, and raisins belong nowhere.
1: @{0} Half of this is correct, and I will not say which half.
2: @{0} @{1} I am from a family of bakers and I am asking you both to leave.

0: Whoever is at the station: is the 17:40 running?
1: @{0} On the board it says 20 minutes, on the platform they say 40, and the man with the whistle has gone for a sandwich.
0: @{1} So an hour. I’ll have a sandwich too.

0: Looking for a fourth for Thursday five-a-side. Skill not needed, lungs useful.
1: @{0} I have lungs. One of them is good.
0: @{1} You are in. 18:00, cage behind the school. Bring a dark and a light shirt.
2: @{0} Is there still room on the bench for a critic?
0: @{2} Always. Bring oranges.

0: What is this plant? It grew out of the compost and is taking over.
1: @{0} That is a pumpkin, and in three weeks it will own your house.
0: @{1} I have given it the bicycle shed.
0: Update about the pumpkin: it has reached the washing line.
1: @{0} I said three weeks. It has been two. Sleep with the windows shut 🎃

0: Has anybody here done the coast path end to end? Thinking of September.
1: @{0} Twice. Go south to north, so you have the sun behind you and the good pub on the last night.
2: @{0} Twelve days if you are proud, fifteen if you are wise.
0: @{1} @{2} Fifteen it is, then. I have nothing left to prove to a cliff.

0: I need one book for a nine-hour train ride. Not sad. Not about trains.
1: @{0} Anything with a heist in it. Nine hours is precisely one heist.
2: @{0} Short stories! Then each tunnel can be an ending.
0: @{1} @{2} Bought one of each. If I miss my stop you’ll hear from me.
0: Reader, I missed my stop.

0: The community kitchen needs somebody with a van on Saturday morning: twelve crates, two streets.
1: @{0} I have a cargo bike and stubbornness. Four trips?
0: @{1} Four trips and lunch.
2: @{0} I can take the heavy ones in the hatchback, if somebody holds the boot shut.

0: My code works on my machine and nowhere else. Any ideas, apart from posting my machine?
1: @{0} Is a file name upper case on yours? That was my entire April.
0: @{1} It is. It was. I owe you a drink and eleven hours.

0: Choir needs two tenors before the summer concert. Age and shape do not matter.
1: @{0} I am a baritone with ambition.
0: @{1} That is what a tenor is. Tuesday, seven o’clock, side door.

0: Found near the fountain: a small grey elephant, one ear, much loved. Please share, someone is not sleeping tonight.
1: @{0} Asked in the nursery group. I think that we have a match!
0: He is home. There were tears (mine) and a drawing in payment. Thank you, @{1} 🐘

0: Power is out from the mill to the church. Does anybody know more?
1: @{0} A digger found the cable. They say three hours.
2: @{0} @{1} We have a gas stove and soup. Third door after the bakery, bring a bowl.
0: Best power cut for years. Thank you, @{2}.

0: Is it rude to repair a friend’s wobbly table without asking?
1: @{0} It is the highest form of love.
2: @{0} I once oiled a host’s door at two in the morning. We are married now.

0: First frost-free night, or am I being a fool? The tomatoes are looking at me through the window.
1: @{0} Wait for the full moon, my mother says. My father says wait for my mother.
0: @{1} Waiting. The tomatoes are furious.

0: Which one for the cover: the blue with the gulls, or the plain one? Be honest.
1: @{0} Blue. The plain one looks as if it had homework.
2: @{0} Plain! Gulls are all over the place this year.
0: One vote each. Very helpful. I’m asking my mother.

0: What do you do with forty lemons? Asking as someone with forty lemons.
1: @{0} Preserve half in salt, and forget them until autumn.
2: @{0} Marmalade. Then come to me for jars, I have a hundred and no lemons.
0: @{2} This is how trade routes begin 🍋

0: Anyone else get the message from “the bank” with three spelling mistakes in it?
1: @{0} Yes. Do not tap on it. Mine wanted to “varify” me.
0: Reported it. Please tell your parents.

0: Does the small museum by the gasworks still open on Wednesdays?
1: @{0} Wednesdays and the first Sunday. Ring the bell twice, the volunteer is in the garden.
0: @{1} Went. Rang twice. Was given a tour of the tools, a tomato plant and the complete history of gas.

0: I have a spare ticket for tonight, second row, string quartet. Free to anybody who will not cough.
1: @{0} I’ve not coughed since March. Me!
0: @{1} It’s yours. Seven thirty, by the left lion.

0: Is there a trick to getting a piano up three floors?
1: @{0} Money.
2: @{0} Friends, rope, and a great deal of shouting “towards me”. Then money.
0: It’s up. Nobody died. It needs tuning and so do I.

0: Good bakery near the northern station? I have eleven minutes.
1: @{0} Left out of the door, second right, ask for the one with seeds. You’ll make it.
0: Made it. With one minute, and the one with seeds. @{1} for mayor.

0: Somebody talk me out of a third cat.
1: @{0} Two is a pair, three is a parliament.
2: @{0} I’m the wrong person to ask and you know it.
0: His name is Wednesday.

0: Learning to swim at thirty-eight. Today I put my face in the water, on purpose.
1: @{0} That is the hardest part! The rest is just moving forward.
0: Twenty-five metres!! The lifeguard clapped. @{1}, you were right.

0: A question for those who bake: why does mine crack on the side?
1: @{0} Score it deeper, and put a tray of water in below.
0: @{1} Look at that. An ear! 🥖
"""
