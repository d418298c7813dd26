"""What people say to each other: short talks with question and answer.

One talk is a block; its lines are «who: text», where who is a, b or c, and «||» parts several ways of saying it.
{day}, {time}, {place}, {dish}, {thing} and {sum} are filled in alike throughout one talk. Blocks with a c are for groups.
"""

SLOTS = {
    "day": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    "time": ["six", "half past six", "seven", "quarter past seven", "half past seven", "eight", "nine", "noon"],
    "place": ["the usual place", "the café by the bridge", "the station", "the corner of the park", "the harbour",
              "the library steps", "the bakery", "the old mill"],
    "dish": ["lentil soup", "dumplings", "the lemon cake", "jollof", "the potato thing", "ramen", "apricot jam", "flatbread", "the green curry",
             "plum tart"],
    "thing": ["drill", "tent", "big pot", "bike pump", "projector", "ladder", "sewing machine", "cool box", "telescope", "sander"],
    "sum": ["12", "18.50", "23", "31", "9.80", "44", "16", "27.40"],
}

ENGLISH = """
a: Are you still up for {day}? || Is {day} still on?
b: Yes! {time}, {place}? || Of course. {place} at {time}?
a: Make it a bit later, I’m slow on {day}s || Perfect, I’ll bring something sweet
b: Deal 🙂 || See you there

a: Could I borrow your {thing} this weekend? || Do you still have that {thing}?
b: Sure, it’s in the cellar behind the bikes || I do, though it has seen things
a: I’ll bring it back on {day}, promise
b: You said that about the last one 😄
a: …it is on my list

a: Did the parcel come?
b: Not yet. The tracking says “nearly” || It says “out for delivery”, since {day}
a: Nearly is a big word
b: It’s here! The box is larger than my hall
a: Photo please
b: I can’t get far enough away from it 😂

a: How do you make {dish}? Mine came out grey
b: What did you do?
a: What it says, but faster || I followed the recipe until I didn’t
b: There’s your trouble. Low heat, lid on, and leave it alone
a: Leave it alone for how long?
b: Until you’ve stopped thinking about it

a: I think I left my umbrella at yours
b: Blue, one bent spoke?
a: That’s the one!
b: It’s holding the balcony door open and seems happy || I’ve been using it. It leaks.
a: Then let it stay

a: My train’s cancelled 😩
b: Oh no. When’s the next?
a: Forty minutes, allegedly from platform 3
b: I’ll keep {dish} warm
a: You’re the best
a: Update: platform 7
b: Run!

a: Have you heard about the library?
b: No, what?
a: Open on Sundays from next month!
b: FINALLY || At last!!
a: I’ll be there at nine with a thermos
b: Save me the window seat

a: Can you look over my numbers before {day}?
b: Sure, which sheet?
a: The one called final_final_2
b: Row 14 adds up the heading 😅
a: …thank you
b: Happens to the best of us. And to you

a: How was the interview?
b: Good, I think? They laughed in the right places
a: When do you hear?
b: End of the week
a: Fingers crossed 🤞
b: They’ve just rung. I GOT IT
a: 🎉🎉🎉 I’m coming over

a: Is a dog supposed to eat grass?
b: A little is fine
a: Define a little
b: How much lawn have you got left?
a: …some

a: Dinner came to {sum} each, no hurry
b: Sent it just now 👍 || Sending it tonight when I’m home
a: Got it, thanks!
b: Thank you for ordering the second dessert
a: It was for the table
b: It was for you

a: Quick one: what’s the wifi password at {place}?
b: It’s on the blackboard, under the soup
a: There’s a drawing of a cat
b: Then the cat’s name
a: How would I know the cat’s name?
b: Everybody knows Mister Biscuit

a: I’ve finished it
b: AND?
a: I need to talk about the ending
b: I’ve got fifty pages to go, don’t you dare
a: I’ll just say one word
b: No!
a: Boats.
b: I’m muting you until {day}

a: What do you want for your birthday?
b: Nothing, really
a: Nothing as in nothing, or nothing as in last year?
b: A {thing} would be nice…
a: That’s not nothing
b: You asked!

a: I’m at the station, which exit?
b: North, the one with the clock
a: There are two clocks
b: The one that’s wrong
a: Both are wrong
b: I can see you. Turn round
a: 👋

a: Can you feed the cat from {day} on? Three days
b: Gladly. Same food as before?
a: She has moved on to the expensive one
b: Of course she has
a: Key’s with Tom, instructions are on the fridge
b: Will there be pages?
a: Only four

a: The boiler’s making the noise again
b: The whistle or the knock?
a: Both, in turns
b: Turn the little wheel a quarter left and wait
a: It’s stopped!
b: Write down the quarter. Last time you went for a half
a: We don’t speak about the half

a: Did you see the moon just now?
b: I’m under a roof, what’s it doing?
a: It’s enormous and orange, go out
b: Oh wow
b: Thank you for that
a: I’d want to be told

a: Morning! Are you running today?
b: If by running you mean walking with intent || Define running
a: {time} at {place}, then
b: It’s raining
a: It’s always raining. Socks dry
b: Ugh. Fine. Put the kettle on for after

a: Do you know a good dentist?
b: Yes, but you’ll wait until autumn
a: It’s the kind of tooth that won’t
b: Then ring at eight sharp and sound brave
a: I can’t do both
b: They took me in once for sounding pathetic
a: That I can do
a: {time} tomorrow. It worked!!

a: I got the plant to flower!!
b: The one that you were about to throw out?
a: I moved it and told it the truth
b: What truth?
a: That I’d been about to throw it out
b: Threats. The oldest fertiliser

a: I’m in the shop. Do we need anything?
b: Milk, bread, the good butter || Oats, lemons, washing-up liquid
a: What else?
b: That’s all
a: I know you. What else
b: …and the biscuits with the jam
a: There it is

a: Are the swifts back at yours?
b: Since {day}! Eleven of them
a: We’ve only got three
b: I can’t send you any, they won’t listen
a: Tell them there’s a nicer roof here
b: Over my dead body 😄

a: I’ve been stuck on 14 across for an hour
b: Read it to me
a: “Keeps cool under pressure”, six letters
b: Fridge?
a: Under pressure though
b: Still a fridge, if you’ve seen ours
a: It fits!!

a: Is {time} on {day} too early to ring you?
b: It’s fine, I’m up with the baby anyway
a: How is she?
b: Loud, round, perfect 👶
a: And you?
b: Quiet, square, tired
a: I’m bringing {dish} round
b: I’m crying, thank you

a: Your code’s in review, and I have one question
b: Only one?
a: Why is there a sleep of 300 ms in it?
b: Ah
a: Ah?
b: Because it works with it and doesn’t without it
a: That’s a diagnosis, not a fix
b: I’ll look properly on {day}
a: 👍

a: The tests are red on main
b: Mine?
a: No, the clock changed at the weekend, and somebody compares dates as text
b: Who’d do such a thing
a: git says you, four years ago
b: I was young
a: Fix is up, have a look?
b: Approved, with shame

a: Concert’s at {time}, shall we meet at {place} first?
b: Yes, I need to eat something before two hours of Bruckner
a: Nobody should hear Bruckner on an empty stomach
b: Do you have the tickets?
a: I thought that you had the tickets
b: …
a: Joking. They’re in my coat

a: How’s your mother doing?
b: Better, thanks for asking. She’s home since {day}
a: Oh, that’s good to hear
b: She’s already moving furniture
a: Sounds like her
b: Could you look in on her on Friday? I’m away
a: Of course. I’ll bring {dish}

a: I may have bought a boat
b: May have?
a: I have bought a boat
b: With a hole in it?
a: With two, but they’re small
b: Does it come with a {thing}?
a: It comes with a bucket
b: Smart people, the sellers

a: Where are you on the map?
b: By the second bridge, where the path splits
a: Left or right?
b: That’s what I wanted to ask you
a: Left. Right goes to the farm with the goose
b: I’ve met the goose
a: Already?
b: We’re past introductions. Going left, fast

a: Any chance you could move our lesson to {day}?
b: {time} would work
a: Perfect. I’ve practised, you know
b: The slow bit too?
a: I’ve practised parts of it
b: The fast parts
a: The fast parts

a: Have you tried the new place by {place}?
b: Twice. Have the {dish}
a: Is it any good?
b: I went twice
a: Fair. {day}?
b: Book for {time}, it fills up
a: Done, table in the corner

a: Do I need a visa to change trains?
b: No, as long as you don’t leave the station
a: What if I want a sandwich?
b: Is the sandwich inside or outside?
a: Inside, I hope
b: Then you’re a transit passenger with lunch

a: I can hear your upstairs neighbour over the phone
b: That’s the trombone. He’s improving
a: Is he?
b: In March it was worse, or I was
a: What’s he playing?
b: We think it’s “Yesterday”

a: Rent’s gone out, could you send me your half?
b: Sent! And the electricity?
a: {sum}, but that’s for two months
b: Less than I thought
a: We’ve been sitting in the dark, you and I
b: Romantic and thrifty

a: The neighbour’s tree is on our side again
b: Is there fruit on it?
a: Plums
b: Then say nothing until September
a: And after September?
b: After September it’s a scandal

a: Will you read my cover letter?
b: Send it over
a: Be kind
b: It’s good! Take out the second paragraph
a: That’s the one about me
b: I know. The rest shows it better
a: Hm. You’re right and I don’t like it
b: That’s what I’m for

a: Landed! 🛬
b: Welcome back! How was it?
a: Hot, loud, wonderful. I have four hundred photos
b: I have twenty minutes
a: I’ll show you the camel then
b: There’s a camel?
a: There are several camels

a: I’ve locked myself out
b: Again?
a: The door fell shut, I was fetching the post
b: I’ve got your spare. Home in half an hour
a: I’m in slippers
b: Go to the bakery, they know you
a: They’ve already given me a stool and a coffee

a: What’s the name of that song you hummed on {day}?
b: Which one?
a: Da da DAA, da-da da
b: That could be eleven songs
a: The one that goes up at the end
b: Oh! It’s my alarm
a: I’ve been humming your alarm for days

a: How far is it from the bus stop?
b: Ten minutes if you don’t stop at the bookshop
a: And if I do?
b: Then I’ll start without you

a: Ferry or bridge?
b: Ferry. The bridge is only faster
a: It’s raining though
b: Ferry with a hat

a: You were right about the second season
b: I’m writing down the date
a: Don’t
b: It’s going on the fridge

a: The bees are out!
b: Swarming?
a: No, just busy. First warm day
b: Any stings?
a: One. I deserved it
b: Put an onion on it
a: That’s not a real thing
b: My grandmother lived to be ninety-six

a: Could you say that word again, the one for the door thing?
b: Hinge
a: HINGE. Thank you. I told the man in the shop “door elbow”
b: And?
a: He gave me the right part
b: Then it is called a door elbow now

a: Are we allowed to pick the apples behind the school?
b: After the first of the month, the caretaker says
a: And who counts the days?
b: The caretaker’s dog
a: I’ve met the dog. We have an understanding
b: Everybody thinks that

a: Quick poll: beard or no beard?
b: For whom?
a: For me
b: Send a picture
b: No beard
a: That was without the beard
b: Oh
b: Beard

a: I’ve got two tickets for {day}, and nobody to go with
b: What is it?
a: Experimental puppetry
b: I’m washing my hair
a: There’s a bar
b: I’ve finished washing my hair. {time}?
a: {place}, I’ll wait outside

a: Your son has left his jacket here
b: The green one?
a: The green one, one shoe and a frog
b: A real frog?
a: It’s in a bowl and we’ve grown fond of it
b: I’ll be there at {time}. Please don’t name it
a: Too late. Come and meet Gregory

a: How’s the new flat?
b: Bright! And the floor slopes
a: How much?
b: An orange rolls from the kitchen to the bedroom by itself
a: So, delivery included
b: Exactly what the agent said

a: I tried your shortcut
b: And??
a: It’s a staircase
b: It’s a short staircase
a: I had the bike with me
b: Ah. Then it’s a short carry

a: Do you remember the name of that guesthouse on the coast?
b: Something with a heron
a: The Grey Heron?
b: That’s it! Ask for the room with the crooked window
a: They’ve got it free on {day}
b: Take it, take it
a: Taken! Want to come along?
b: I thought you’d never ask

a: The {thing} has stopped working, and I swear I did nothing
b: What did you do?
a: I dropped it a little
b: How little?
a: One floor
b: I’ll bring glue and low expectations

a: I’m making a list for {day}. Who’s coming?
b: The two of us, Lena, and Kofi if he’s back
a: Vegetarian?
b: Lena yes, Kofi on Mondays
a: So {dish}?
b: {dish} makes everybody happy

a: Has the plumber been?
b: He’s been, he’s looked, he’s sighed
a: How deep a sigh?
b: About {sum} an hour
a: Could be worse
b: He’s coming back on {day} with another man, to sigh together

a: I had the strangest dream about you
b: Oh dear
a: You ran a hotel for lost gloves
b: Was it doing well?
a: Fully booked, but only singles
b: 😂😂😂

a: Happy birthday!! 🎂
b: Thank you!! You’re the first after my mother
a: Nobody is ever before your mother
b: She rang at five past midnight to tell me about the weather that day
a: And how was the weather?
b: “Undecided, like you”
"""

GROUPS = """
a: Who’s coming on {day}?
b: Me! || I’m in
c: Me too, if it stays dry || Count me in, a little late
a: Meeting at {time} at {place}
b: I’ll bring {dish}
c: Then I’ll bring an appetite 😄

a: Has anybody seen the {thing}?
b: I had it last week and gave it to somebody tall
c: I’m tall. I haven’t got it
a: How many tall people do we know
b: Found it! It was behind my door
c: Justice for the tall

a: Small change of plan: {place} instead, same time
b: Fine by me
c: Is there parking?
a: There’s a hedge
c: I’ll come by bike

a: I’ve added everything up: it’s {sum} each
b: Paid ✅
c: Paid as well, and thanks for doing the sums
a: Two still missing, you know who you are
b: It’s always the treasurer
a: …it’s me. I’m one of them

a: Vote: {day} or the day after?
b: {day}
c: {day}, if it starts after {time}
a: {day} it is, from {time} on
b: That was the fastest vote in our history
c: Screenshot it

a: The weather forecast for {day} is a picture of an ark
b: We said we’d go in any weather
c: We were young and it was sunny
a: Museum instead?
b: Museum, and then {dish}
c: Best expedition yet

a: Photos from last time are up, have a look
b: Number 14!!! I’m framing it
c: Please delete number 14
a: Number 14 is staying
b: Number 14 is our new group picture

a: Who has the key?
b: I gave it to Goran || Not me, I gave it back on {day}
c: Check your coat
b: It isn’t in my coat
a: The other coat
b: …I’ll be there in ten minutes

a: New idea: each of us brings one dish from home
b: Yes!! I’ll make {dish}
c: I can only make toast
a: Then you’re in charge of toast
c: Finally, responsibility

a: I’ve a cold and no voice, go ahead without me on {day}
b: Oh no, get well soon! Do you need anything?
a: Soup and gossip
c: I’ll drop by with both
b: Don’t start the gossip without me

a: How did everybody get home?
b: Last tram, singing
c: On foot, because someone sang on the last tram
a: It was lovely. Again next month?
b: Again next month
c: I’ve put it in the calendar with three exclamation marks

a: Who can carry the {thing} on {day}?
b: I’ve a car until {time}
c: And I’ve a back until I’m forty
a: You’re forty-three
c: Exactly

a: What are we reading next?
b: Something under 300 pages, please
c: The one with the lighthouse?
a: Everybody fine with the lighthouse?
b: As long as nobody drowns
c: …maybe another one then

a: Reminder: subscriptions are due this week
b: How much was it again?
a: {sum}, as it’s been since for ever
c: I’ve paid, but my note just says “hello”
a: I saw. I thought that was friendly

a: Are children welcome on {day}?
b: Of course! Mine will be there, covered in something
c: And dogs?
a: Dogs more than welcome
c: And my brother-in-law?
a: On a lead

a: I’m standing at {place}, and I’m alone
b: It’s tomorrow!
a: It’s today in my calendar
c: It’s definitely tomorrow, I’ve got {dish} in the oven for it
a: Then I’m the first. By a day
b: Early bird 🐦

a: We need a name for the team
b: The Late Arrivals
c: Athletic Sofa
a: Athletic Sofa!!
b: Alright, mine’s going in the drawer
c: The shirts are going to be so good

a: Thank you all for helping with the move ❤️
b: My pleasure. My arms are now a bit longer
c: Where did the piano end up?
a: In the kitchen, for the time being
b: For ever, then
c: Breakfast with music. I see no problem

a: Could one of you take my shift on {day}?
b: I can, if you take mine the week after
a: Done! You’re a hero
c: I was about to offer and now I’m relieved
b: We saw you typing for a full minute

a: Summer party: shall we ask the neighbours?
b: Yes, or they’ll hear it without having been asked
c: The trombone too?
a: Especially the trombone
b: He knows “Yesterday” now
c: The whole of it?
b: Most of yesterday

a: Somebody’s left a scarf here, red, hand-knitted
b: Not mine, sadly
c: Mine! I’ve been looking for it since {day}
a: It’s on the hook by the door
c: Please guard it with your life, it was my gran’s
a: It’s got a chair of its own now

a: Good news: we’ve got the hall on {day}s from September
b: All evening?
a: From {time}, until the caretaker yawns
c: So until ten past
b: Still!! Well done 👏
"""

# By language; names as in people's. Two speak unless a line says c.
OTHERS = {
"es": """
a: ¿Sigue en pie lo del sábado?
b: ¡Claro! ¿A las ocho en la plaza?
a: A las ocho y media, que salgo tarde
b: Vale, yo llevo el postre 🍰
a: Entonces llego a las ocho

a: ¿Cuánto te debo de la cena?
b: Catorce con cincuenta
a: Hecho, ya te lo he mandado
b: Recibido, gracias. El vino lo pongo yo la próxima
a: Eso dijiste la última

a: ¿Tienes la receta del arroz?
b: Tengo la de mi madre, pero no pone cantidades
a: ¿Y qué pone?
b: «Hasta que huela»
a: ¿A qué?
b: A domingo

a: He perdido el tren 😩
b: ¿Otra vez? ¿Cuándo sale el siguiente?
a: En cuarenta minutos
b: Voy a buscarte en coche, no te muevas
a: Eres un cielo

a: Ya han abierto la piscina
b: ¿Y el agua?
a: Fría como una factura
b: ¿Vamos mañana a las siete?
a: Vamos. Luego churros
b: Luego churros, por supuesto

a: ¿Me riegas las plantas la semana que viene?
b: Sí, ¿todas?
a: Todas menos el cactus, que está ofendido
b: ¿Por qué?
a: Lo regué
""",
"ru": """
a: Ты дома?
b: Буду через полчаса, а что?
a: Пирог получился больше духовки
b: Уже бегу
a: Чай ставлю

a: Ты дочитала?
b: Осталось страниц сорок
a: Тогда молчу
b: Молчи, пожалуйста
a: Только скажу: лодка
b: Всё, я тебя отключаю до завтра 😄

a: Во сколько завтра электричка?
b: В 8:14, с третьего пути
a: Есть что-нибудь позже?
b: Есть 9:40, но грибы встают рано
a: Ладно, 8:14. Термос с меня

a: Приёмник опять молчит
b: А ты его выключал?
a: Я его уронил
b: Тогда неси, посмотрим
a: Он упал несильно, со шкафа
""",
"ar": """
a: هل وصلتِ؟
b: تقريبًا، أنا عند الجسر
a: أي جسر؟
b: الذي كنّا نقف عليه دائمًا
a: أراكِ! 👋

a: متى نلتقي يوم الخميس؟
b: السابعة في المقهى القديم؟
a: ممتاز، سأحضر الكتاب معي
b: والقهوة عليّ هذه المرة
a: قلتَ هذا في المرة الماضية 😄

a: كيف حال الوالدة؟
b: أحسن بكثير والحمد لله، عادت إلى البيت أمس
a: الحمد لله على سلامتها
b: وبدأت تحرّك الأثاث
a: إذن هي بخير فعلًا

a: جرّبت وصفة العدس
b: وكيف كانت؟
a: أحرقت البصل
b: كم دقيقة تركته؟
a: مكالمة واحدة مع أمي
b: هذا نصف ساعة على الأقل 😂
""",
"ja": """
a: 土曜日、まだ大丈夫?
b: 大丈夫です。十時に駅前でいい?
a: 十時半でお願いします、朝が弱くて…
b: 了解です☺️
a: パン買っていきますね

a: 電車が止まってます…
b: えっ、どこで?
a: 橋の上。景色は最高
b: じゃあ写真送って
a: 送った
b: うらやましい遅延だ

a: 昨日のカレー、どうやって作ったんですか
b: 二日前から作りました
a: それだけ?
b: あとは触らないこと
a: 一番むずかしい

a: 猫、三日だけ預かってもらえる?
b: もちろん! ごはんは同じの?
a: 最近は高いほうしか食べなくて
b: 出世しましたね
a: 鍵は花屋さんにあります🌸

a: 読み終わりました
b: どうでした?
a: 最後の一行で泣きました
b: でしょう
a: 次を貸してください
""",
"ko": """
a: 토요일에 산 갈래?
b: 좋아, 몇 시?
a: 일곱 시 입구에서
b: 너무 이른데… 여덟 시?
a: 컵라면 내가 살게
b: 일곱 시 반 👌

a: 택배 왔어?
b: 아직, “곧 도착”이래
a: 그거 화요일부터 그랬잖아
b: 방금 왔다! 상자가 나보다 커
a: 사진 사진 📷

a: 저녁값 얼마 보내면 돼?
b: 만사천 원
a: 보냈어!
b: 받았어, 고마워. 디저트는 내가 냈다
a: 다음엔 내가 살게

a: 빵집 새로 생긴 거 봤어?
b: 어디?
a: 우체국 옆
b: 지금 가는 중
a: 나도. 문 앞에서 봐 🥐
""",
"zh": """
a: 周六还去吗？
b: 去！老地方？
a: 老地方，九点，我带茶
b: 我带花生
a: 那我们什么都不缺了

a: 面要煮多久？
b: 看着煮
a: 看多久？
b: 看到它也看你
a: 😂 好吧

a: 猫在你那儿吗？
b: 在，睡在我的稿子上
a: 不好意思，我下班来接
b: 不急，它删掉的那段确实不好
a: 那就让它改完

a: 我到站了，哪个出口？
b: 北口，有钟的那个
a: 两个都有钟
b: 走慢的那个
a: 看到你了👋
""",
"he": """
a: מגיעים בשישי?
b: כן! מה להביא?
a: רק תיאבון
b: אז אביא גם סלט
a: את אף פעם לא מקשיבה 😄

a: הרכבת מתעכבת
b: בכמה?
a: עשרים דקות, ויש שקיעה
b: אז אל תמהר
a: שמרי לי לחם
b: שמרתי, עם הקצה

a: סיימת את הספר?
b: אתמול בשתיים בלילה
a: ומה חשבת על הסוף?
b: שאני צריכה עוד אחד כזה
a: אביא ביום ראשון

a: יש לך מברגה?
b: יש, אבל בלי סוללה
a: ולמי יש סוללה?
b: לשכן, אבל בלי מברגה
a: אז אנחנו צוות 🛠️
""",
"el": """
a: Θα έρθεις την Κυριακή για μπάνιο;
b: Αν δεν έχει μελτέμι
a: Πάντα έχει μελτέμι
b: Τότε θα έρθω με καπέλο
a: Στις έντεκα στο λιμανάκι ☀️

a: Πώς το λένε το εργαλείο για τις πόρτες;
b: Κατσαβίδι;
a: Όχι, το άλλο
b: Στείλε φωτογραφία
a: Αυτό
b: Αυτό είναι κουτάλι

a: Μου πέτυχε το ψωμί!
b: Επιτέλους! Φωτογραφία;
a: Το φάγαμε
b: Όλο;
a: Ήμασταν τρεις
""",
"hi": """
a: पहुँच गई क्या?
b: बस दस मिनट
a: यह तुमने बीस मिनट पहले भी कहा था
b: तब भी सच था 😄
a: चाय ठंडी हो रही है

a: रविवार को दौड़ने चलोगी?
b: कितने बजे?
a: साढ़े पाँच
b: सुबह के?!
a: हाँ, फिर पोहा मेरी तरफ़ से
b: तब ठीक है

a: किताब ख़त्म की?
b: अभी नहीं, चालीस पन्ने बाक़ी हैं
a: अंत मत पूछना मुझसे
b: बताना भी मत!
a: बस इतना कि नाव…
b: बस!!
""",
"de": """
a: Steht Samstag noch?
b: Klar, zehn Uhr am Kanal?
a: Halb elf, ich muss vorher zum Markt
b: Bring Kirschen mit 🍒
a: Wenn welche ankommen

a: Hast du meinen Schraubenschlüssel?
b: Den 15er? Liegt bei mir auf der Fensterbank
a: Seit wann?
b: Seit Ostern
a: Welchem Ostern?

a: Die Bienen sind ausgezogen
b: Alle?
a: Alle. Sie hängen jetzt beim Pfarrer im Birnbaum
b: Sind sie wenigstens getauft
a: 😂 Kannst du mir heute Abend beim Einfangen helfen?
b: Wenn ich nicht auf die Leiter muss
a: Auf die Leiter muss ich auch nicht. Deshalb frag ich dich
""",
"tr": """
a: Cumartesi balığa geliyor musun?
b: Saat kaçta?
a: Beşte
b: Sabahın beşi mi?
a: Balıklar erkenci
b: Tamam, çay benden ☕️

a: Vapuru kaçırdım
b: Sonraki kaçta?
a: Kırk dakika sonra
b: O zaman iki simit al, ben de geliyorum
a: Aldım bile

a: Yemek kişi başı ne kadar tuttu?
b: On sekiz
a: Gönderdim
b: Geldi, sağ ol. Tatlıyı saymadım
a: Tatlı sayılmaz zaten
""",
}


def talks(block):
    """Lists of (who, [ways of saying it])."""
    result = []
    for chunk in block.strip().split("\n\n"):
        lines = []
        for line in chunk.splitlines():
            who, _, text = line.partition(": ")
            lines.append((who, [way.strip() for way in text.split(" || ")]))
        result.append(lines)
    return result
