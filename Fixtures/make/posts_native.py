"""What people post in the languages other than English.

For each: sentences that can stand alone, each with the theme that chooses its picture, and codas that may follow any of them.
"""

BANKS = {
"es": ("""
sea: Primer baño del año. El agua a 15 grados y la dignidad a menos tres.
cooking: Mi abuela dice que el secreto es no tener prisa. Y ajo.
city: Han vuelto las golondrinas a la plaza y con ellas el ruido bueno.
cycling: Subí el puerto detrás de un cartero que iba silbando.
garden: Los tomates del balcón ya tienen nombre. No pienso comerme a Federico.
books: Encontré un billete de tren de 1991 dentro del libro: Valencia–Cuenca, solo ida.
market: El de los melocotones me ha guardado los últimos. Eso es amor, lo demás son poemas.
music: En el tercero alguien practica el mismo tango desde febrero. Hoy por fin le salió el final.
weather: Llovió cinco minutos y toda la calle salió a mirar.
cooking: Doce personas, una sartén y mucha fe.
night: Se fue la luz en el barrio y descubrimos que teníamos estrellas.
trains: El tren paró en medio del campo y nadie protestó: había amapolas.
hike: Cinco horas de subida para un bocadillo con vistas.
craft: He deshecho la manga por tercera vez. Ya somos íntimas, la manga y yo.
city: ¿Quién ha puesto una silla en la parada del autobús? Gracias, seas quien seas.
pets: El gato ha descubierto la impresora.
photo: Esperé dos horas la luz y llegó mientras cambiaba de objetivo.
sea: El faro abre dos días al año, y hoy era uno.
garden: La higuera que «no iba a sobrevivir» tiene once higos.
books: «Nadie se pierde del todo en una ciudad con río», dice. Lo he subrayado dos veces.
cooking: El sofrito no se mira, se escucha.
music: Ensayo del coro: salimos una hora tarde y nadie quería irse.
city: En el ascensor: «No es que no venga, es que viene por dentro».
night: Conté siete estrellas fugaces y solo tenía dos deseos.
market: Fui a por cebollas y volví con un helecho.
photo: La foto buena es la que hice sin querer.
""", """
Y así todo el día.
Mañana, más.
Volvería a hacerlo.
No me arrepiento de nada.
¿A alguien más le pasa?
Hoy no pido otra cosa.
Luego, siesta.
Que conste en acta.
Os lo cuento con calma otro día.
Aplausos, por favor 👏
""", "#domingo #cosaspequeñas #barrio"),
"ru": ("""
weather: Туман стоял до обеда. Снял семь кадров, оставил один.
pets: Кот снова выбрал коробку, а не лежанку.
books: Чай остыл, зато глава дочитана.
city: Во дворе покрасили скамейку, и весь дом вышел смотреть, как она сохнет.
garden: Сирень зацвела в ту самую ночь, когда все уже перестали ждать.
trains: Боковая полка, подстаканник, до дома ещё девятьсот километров.
night: Ночью видели МКС: четыре минуты тишины на весь балкон.
craft: Починил приёмник. Что именно починил, не знаю, но играет.
cooking: Бабушкин рецепт: «муки — сколько возьмёт». Взяло много.
books: В библиотечной книге кто-то написал на полях «не верю». И ведь прав.
music: Сосед разучивает Шопена. Я уже тоже почти выучил.
hike: Шли за грибами, принесли ежа. Ежа отнесли обратно.
weather: Гроза прошла стороной, а гордость осталась.
photo: Плёнка кончилась ровно тогда, когда начался закат.
city: Трамвай опоздал на десять минут, зато вагоновожатая пела.
garden: Тёща прислала рассаду. Сорок корней. У нас балкон.
code: Три дня искали ошибку. Ошибка была в слове «ошибка».
sea: Вода плюс двенадцать. Зашёл, вспомнил всех родственников, вышел.
pets: Щенок впервые увидел лужу и долго с ней разговаривал.
market: На рынке продавец сказал: «Арбуз честный». И не соврал.
""", """
Вот и вся неделя.
Завтра попробую ещё раз.
Никому не говорите.
Мелочь, а приятно 🙂
Теперь можно и чаю.
А у вас как?
Бывает же.
Так и живём.
Ставлю пятёрку.
""", "#вечер #мелочи"),
"tr": ("""
sea: Bugün deniz çarşaf gibiydi.
pets: Kedi klavyenin üstünde, rapor yarına kaldı 🐈
cooking: Kahve bitti, sohbet bitmedi.
weather: Rüzgâr haritaya uymuyor, harita rüzgâra.
city: İğde ağaçları açmış, sokak mis gibi.
sea: Oltaya bir ayakkabı takıldı. Numarası da uyuyor.
market: Pazarda domates sordum, bir saat siyaset dinledim, iki kilo aldım.
books: Sahaftan aldığım kitabın içinden eski bir mektup çıktı: «Geç kalma» diyor.
trains: Vapuru kaçırdım ama gün batımını yakaladım.
cooking: Annem tarifte «aldığı kadar un» diyor; un bir türlü doymadı.
code: Hata üç gün bizi aradı, biz onu; meğer saat dilimiymiş.
garden: Balkondaki fesleğen bu yıl benden uzun.
night: Elektrik kesildi, bütün mahalle balkona çıktı, yıldızlar da.
music: Üst komşu ud çalmaya başlamış. Henüz ikimiz de alışamadık.
photo: Güzel fotoğraf, deklanşöre yanlışlıkla basınca çıktı.
hike: Zirveye iki yüz metre kala döndük; çay soğuyordu.
city: Yeni tramvayda ilk yolculuk: herkes pencere kenarında çocuk gibiydi.
football: Halı sahada dört sıfır yendik. Kalecimiz diş hekimi.
""", """
Neyse, çay demlendi ☕️
Yarın yine denerim.
Değdi.
Siz olsanız ne yapardınız?
Bir de yağmur yağsa tam olacak.
Kimseye söylemeyin.
Bugünlük bu kadar.
Darısı başınıza.
""", "#izmir #bugün"),
"ar": ("""
books: نسيت المفاتيح مرة أخرى، لكنني وجدت قصيدة في الجيب.
cooking: القهوة أولًا، ثم النقاش ☕️
weather: رائحة المطر على الحجر القديم لا تُوصف.
city: في حيّنا مخبز جديد، ومنذ الأمس لا ينام أحد بعد السادسة.
craft: كتبت حرف النون خمسين مرة، والأخيرة ابتسمت لي.
night: انقطعت الكهرباء فاكتشفنا أن لنا سماء.
market: سألت البائع عن التمر فحكى لي عن أبيه، ثم أعطاني كيلو بالمجان.
sea: البحر هادئ اليوم كأنه يقرأ.
books: أنهيت الرواية في الثانية صباحًا وبقيت جالسًا في الظلام قليلًا.
garden: أزهر الياسمين على الشرفة قبل موعده بأسبوعين 🌿
cooking: قالت جدّتي: «الملح بالعين». عيني تحتاج إلى نظارة.
code: ثلاثة أيام من البحث، والخطأ كان فاصلة واحدة.
music: جارنا يتعلم العود، وقد وصلنا معه إلى السطر الثاني.
photo: انتظرت الضوء ساعتين، وجاء حين أغلقت الكاميرا.
trains: تأخر القطار أربعين دقيقة، ولم يشتكِ أحد لأن القمر كان بدرًا.
pets: القطة نامت على دفتر الدرجات، فنجح الجميع 😹
city: سبع روائح عشاء مختلفة على سلّم بنايتنا في السادسة والنصف.
hike: صعدنا الجبل لنرى المدينة، ثم قضينا الوقت نبحث عن بيوتنا.
craft: الخط لا يستعجل أحدًا.
market: ذهبت لأشتري بصلًا وعدت بمصباح نحاسي.
""", """
وهذا يكفي لهذا اليوم.
غدًا نحاول من جديد.
هل حدث هذا معكم أيضًا؟
الحمد لله على الأشياء الصغيرة.
لا تخبروا أحدًا.
والشاي جاهز.
كان يومًا طيبًا 🌙
ومن يدري؟
""", "#مساء_الخير #تفاصيل"),
"ja": ("""
garden: 朝顔が咲きました🌸
pets: 今日は猫に起こされた。四時に。
trains: 各駅停車で隣の県まで。お弁当がいちばん美味しい場所は窓側。
books: 古本屋で自分の本に再会した。線を引いたのも私だった。
weather: 梅雨入り。長靴を出したら去年のどんぐりが出てきた。
photo: 傘の列がきれいだったので、一本遅らせて撮った。
cooking: 出汁を変えただけで、家族が静かになった。
city: 商店街の時計が五分進んでいるのは、みんな知っていて直さない。
hike: 頂上は霧。おにぎりだけが晴れていた⛰️
night: 流れ星、三つ。願いごとは一つしか用意していなかった。
sea: 夜明け前の海、音だけが先に起きている。
craft: 新しい茶碗、ちょっと歪んでいて好き。
music: 隣の部屋のピアノ、今日はじめて最後まで弾けていた。拍手したかった。
code: 三日悩んだバグ、原因は全角スペースでした。
trains: 終点まで寝てしまった。終点がいい町だった。
garden: 紫陽花の色が去年と違う。土の気分らしい。
market: 朝市でトマトを買ったら、きゅうりがついてきた。
city: 銭湯の帰り、知らない犬に挨拶された。
weather: 風鈴を出した日に限って、無風。
books: 栞がわりのレシートに「大根、電池、勇気」とあった。
football: 息子の試合、〇対七。本人は「いい風だった」と言っている。
photo: フィルムの最後の一枚を、一週間持ち歩いている。
cooking: カレーは二日目、言い訳は三日目。
pets: 里親募集の「週末だけ」が、もう五回目の週末です。
""", """
いい一日でした。
また明日。
誰にも言わないでください。
来年も覚えていたい。
それだけです。
ちょっと得した気分☺️
同じ人、いますか。
お茶にします🍵
""", "#日々 #散歩"),
"ko": ("""
hike: 오늘 정상에서 컵라면 먹었어요 🍜
city: 빵집 세 군데, 후회는 없음.
code: 비 오는 날엔 코드도 천천히.
city: 버스를 놓쳐서 노을을 봤다.
pets: 고양이가 리뷰를 승인했습니다. 발바닥으로.
books: 책갈피 대신 꽂아 둔 기차표가 2009년 것이었다.
sea: 새벽 바다는 소리부터 밝아진다.
cooking: 엄마 레시피: “적당히.” 적당히가 제일 어렵다.
music: 옆집 기타, 드디어 후렴까지 갔다. 박수 칠 뻔.
weather: 장마 시작. 우산은 넷인데 다 회사에 있다.
market: 시장에서 두부 한 모 샀는데 덤이 더 많았다.
garden: 베란다 고추 첫 수확: 두 개. 온 가족이 나눠 먹음.
photo: 필름 마지막 한 장을 일주일째 들고 다닌다.
trains: 완행열차 창가 자리, 오늘의 사무실.
night: 별똥별 셋, 소원은 하나.
books: 새벽 두 시에 마지막 장. 잠깐 그대로 앉아 있었다.
city: 엘리베이터 고장으로 아파트 전체가 등산 중.
cooking: 김치찌개는 이틀째가 진짜.
""", """
내일 또.
이 정도면 좋은 하루.
저만 그런가요?
작은 승리 ✌️
아무한테도 말하지 마세요.
커피 한 잔 더.
다음엔 같이 가요.
""", "#오늘 #산책"),
"zh": ("""
cooking: 今天的面条终于筋道了。
weather: 雨停了，蝉开始上班。
city: 跑了五公里，遇到三只猫。
books: 书店老板记得我的名字，也记得我欠他十块。
market: 早市的桃子好香🍑
hike: 地图上没有的小路最好走。
pets: 猫睡在键盘上，文章反而变短变好了。
trains: 慢车，靠窗，一壶茶，六个小时刚刚好。
cooking: 外婆的菜谱只写了两个字：看着。
night: 停电了，整栋楼的人在楼顶认星星。
code: 查了三天，最后发现是时区。又是时区。
garden: 阳台上的薄荷想要统治世界。
photo: 等了两个小时的光，换镜头的时候来了。
sea: 第一次看见海的爸爸，站了很久，说：“好大一碗。”
music: 楼下大爷的二胡，今天拉到了副歌。
city: 新修的天桥上已经有人下棋了。
weather: 出门带伞，一定晴天。我是全城的护身符。
books: “没有什么比旧地图更新鲜的了。”——今天读到的一句。
market: 去买葱，回来的时候抱着一盆兰花。
cooking: 火锅吃到最后，大家都在捞回忆🍲
""", """
明天继续。
今天就到这里。
有人懂吗？
值了。
不许笑。
先喝口茶。
小小的胜利✌️
""", "#日常 #慢生活"),
"he": ("""
hike: שלוש ציפורים חדשות ברשימה היום 🐦
music: הפסנתר של השכנים סוף סוף מכוון.
cooking: הלחם של שישי יצא מושלם. אל תשאלו איך.
city: קפה שחור, ספסל, ומישהו שר מהחלון ממול.
books: מצאתי בספר משומש פתק: «להחזיר לדינה עד חנוכה». דינה, סליחה.
sea: הים היה שטוח כמו נייר, ואני הגעתי עם גלשן.
market: הלכתי לשוק לקנות בצל וחזרתי עם עציץ ועצות.
night: הפסקת חשמל, וכל השכונה גילתה שיש לה כוכבים.
garden: הלימון על המרפסת החליט שהשנה הוא עץ רציני.
weather: גשם ביוני. אף אחד לא מאמין לי, הכביסה כן.
trains: הרכבת עמדה עשרים דקות מול השקיעה ואיש לא התלונן.
pets: החתול ישב על המקלדת ושיפר את הפסקה.
code: שלושה ימים של חיפושים, והבאג היה רווח.
photo: התמונה הכי טובה היא זו שצילמתי בטעות.
cooking: סבתא אומרת «קמח כמה שלוקח». לקח הרבה.
city: מישהו סרג צעיף לפסל בכיכר. שוב.
""", """
מחר שוב.
וזה מספיק להיום.
היה שווה.
אל תגלו לאף אחד.
עכשיו תה.
רק אני?
נו, טוב 🙂
""", "#בוקר_טוב #קטנות"),
"el": ("""
sea: Κολύμπησα με τον ήλιο να βγαίνει 🌅
books: Μετέφραζα όλη μέρα μία λέξη.
sea: Η θάλασσα σήμερα ήταν καθρέφτης.
city: Ο φούρναρης με ρώτησε αν είμαι καλά. Πήρα δύο κουλούρια.
cooking: Η γιαγιά λέει «αλάτι όσο πάρει». Πήρε.
market: Στη λαϊκή μου χάρισαν έναν βασιλικό επειδή τον χαιρέτησα.
garden: Η συκιά του γείτονα έσκυψε πάνω από τον φράχτη. Το θεωρώ πρόσκληση.
weather: Μελτέμι από τις έξι. Τα σεντόνια έχουν ήδη φτάσει στην Αίγυπτο.
trains: Το πλοίο άργησε μία ώρα και κανείς δεν κοίταξε το ρολόι.
night: Έσβησαν τα φώτα στο χωριό και άναψε ο ουρανός.
music: Ο από πάνω μαθαίνει μπουζούκι. Είμαστε στο δεύτερο μάθημα.
pets: Τρεις γάτες στο σκαλοπάτι, καμία δική μου, όλες πεινασμένες.
photo: Περίμενα δύο ώρες το φως και ήρθε όταν έκλεισα την τσάντα.
cooking: Το ψωμί φούσκωσε. Επαναλαμβάνω: φούσκωσε.
city: Στο λεωφορείο άκουσα πέντε γλώσσες και ένα καναρίνι.
books: Βρήκα μέσα στο βιβλίο ένα εισιτήριο του 1978.
""", """
Αύριο πάλι.
Άξιζε.
Τώρα καφές.
Μόνο σε μένα συμβαίνει;
Μην το πείτε πουθενά.
Καλό απόγευμα σε όλους ☀️
Ας είναι.
""", "#θάλασσα #σήμερα"),
"hi": ("""
weather: आज बारिश में भीगकर चाय पी ☕️
books: किताब ख़त्म, दुख शुरू।
hike: पाँच किलोमीटर धीरे-धीरे, पर पूरे।
cooking: माँ कहती हैं नमक “अंदाज़ से”। मेरा अंदाज़ आज फिर ग़लत था।
market: बाज़ार धनिया लेने गई थी, तीन साड़ियाँ देखकर लौटी।
trains: ट्रेन दो घंटे लेट थी, पर डिब्बे में अंताक्षरी समय पर शुरू हुई।
garden: छत के गमले में पहली भिंडी निकली है। नाम रख दिया है।
city: बिजली गई तो पूरी गली बाहर आकर बातें करने लगी।
music: पड़ोस में कोई सितार सीख रहा है। अब हम सब सीख रहे हैं।
code: तीन दिन की मेहनत, और गलती एक अल्पविराम की थी।
pets: गली का कुत्ता अब हमारे दरवाज़े पर चौकीदार है, अपनी मर्ज़ी से।
night: छत पर लेटकर सात टूटते तारे गिने ✨
photo: सबसे अच्छी तस्वीर वही निकली जो ग़लती से खिंची।
cooking: आम का मौसम है, बाक़ी सब इंतज़ार कर सकता है 🥭
books: पुस्तकालय ने देर से लौटाने वालों को माफ़ कर दिया है। मैं झोला लेकर जा रही हूँ।
weather: पहली बारिश की ख़ुशबू बोतल में क्यों नहीं मिलती?
""", """
बस, आज के लिए इतना ही।
कल फिर कोशिश।
किसी से कहना मत।
आपके यहाँ क्या हाल है?
छोटी-छोटी ख़ुशियाँ 🙂
अब चाय।
मज़ा आ गया।
""", "#बारिश #आज"),
"th": ("""
cooking: เผ็ดมากแต่อร่อย 🌶️
pets: แมวนอนบนแป้นพิมพ์อีกแล้ว
market: ฝนตกหนัก แต่ตลาดยังคึกคัก
city: ไฟดับทั้งซอย ทุกคนเลยออกมานั่งคุยกัน
garden: มะม่วงหลังบ้านออกลูกแรก ทั้งบ้านยืนดูกันเงียบ ๆ
cooking: แม่บอกว่าใส่น้ำปลา “พอดี” แต่ไม่เคยบอกว่าพอดีของใคร
trains: รถไฟช้าไปชั่วโมงหนึ่ง แต่วิวสวยกว่าตารางเวลา
weather: พกร่มทีไร แดดออกทุกที
night: คืนนี้ดาวเยอะจนลืมนอน
hike: เดินขึ้นดอยสามชั่วโมงเพื่อกาแฟหนึ่งแก้ว คุ้ม ☕️
music: ข้างบ้านหัดเป่าขลุ่ย วันนี้จบเพลงได้ครั้งแรก
cycling: ยางรั่วหน้าร้านซ่อมพอดี โชคดีแบบแปลก ๆ
market: ตั้งใจไปซื้อต้นหอม กลับมาพร้อมกล้วยไม้สองกระถาง
photo: รูปที่ชอบที่สุดคือรูปที่กดโดยไม่ตั้งใจ
""", """
พรุ่งนี้เอาใหม่
ใครเป็นเหมือนกันบ้าง
วันนี้แค่นี้พอ
อย่าบอกใครนะ 🤫
สุขใจดี
แล้วก็นอน
""", "#วันนี้ #เชียงใหม่"),
"de": ("""
cycling: Das Rad ist fertig. Fast. Also morgen.
garden: Die Bienen sind ausgezogen, ich bin gerührt 🐝
weather: Regen, Radio, Reparatur.
craft: „Nur kurz in den Keller“ — vier Stunden später.
cooking: Quitten sind einfach Äpfel mit Charakter.
city: In unserem Treppenhaus riecht es ab sechs nach sieben Abendessen.
trains: Der Zug hatte vierzig Minuten Verspätung, aber der Mond war pünktlich.
books: Auf Seite 212 hat jemand „NEIN!“ an den Rand geschrieben. Zu Recht.
code: Drei Tage gesucht. Es war die Zeitzone. Es ist immer die Zeitzone.
cycling: Gegenwind hin, Gegenwind zurück. Erklärt mir das.
music: Der Nachbar übt Posaune. Er hat Fortschritte gemacht, wir auch.
garden: Man darf jetzt niemandem mehr den Rücken zudrehen, sonst bekommt man Zucchini geschenkt.
night: Sternschnuppen gezählt: sieben. Wünsche gehabt: zwei.
hike: Zweihundert Meter unter dem Gipfel umgedreht. Vernunft fühlt sich seltsam an.
pets: Die Katze hat den Drucker entdeckt.
market: Für Zwiebeln losgegangen, mit einem Farn zurückgekommen.
sea: Der Baggersee hat 17 Grad. Ich habe laut gezählt, die anderen auch.
weather: Hagel, groß wie Kichererbsen, genau eine Minute lang.
city: Auf der Parkbank lag ein Zettel: „Sitzt gut.“ Stimmt.
photo: Das schönste Bild ist wieder das versehentliche.
""", """
Morgen mehr.
Ich bereue nichts.
Erst mal Tee.
Kennt das noch wer?
So viel dazu.
Das war’s für heute.
Kann man machen.
Feierabend 🍻
""", "#feierabend #kleinigkeiten"),
"fr": ("""
cooking: Le beurre n’est pas négociable.
books: J’ai retrouvé entre deux pages un ticket de bus de 1987 et un trèfle à trois feuilles.
trains: Le train s’est arrêté en plein champ et personne n’a râlé : il y avait des coquelicots.
music: Mixage terminé à quatre heures. Le silence d’après était en stéréo.
market: Partie chercher des oignons, revenue avec une fougère.
city: L’horloge de la place avance de cinq minutes et tout le quartier s’en arrange.
weather: Il a plu vingt minutes et toute la rue s’est mise à parler.
garden: La glycine a mis six ans, puis tout le mois de mai.
night: Panne de courant : on a découvert qu’on avait des étoiles.
craft: Remonté la pendule du grand-père. Elle retarde, comme lui.
pets: Le chat s’est assis sur le clavier et le paragraphe est meilleur.
cooking: La recette dit « une noix de beurre ». Tout dépend du noyer.
city: Entendu dans l’ascenseur : « Il n’est pas fâché, il est breton. »
photo: Deux heures à attendre la lumière ; elle est venue quand je rangeais.
music: Quelqu’un joue du hautbois sous le pont. J’ai raté deux trams exprès.
books: Fini à deux heures du matin. Je suis restée un moment dans le noir.
""", """
On recommence demain.
Aucun regret.
Et voilà.
Je ne dirai pas combien.
Ça vous arrive aussi ?
Un thé, maintenant.
C’est déjà beaucoup 🙂
""", "#dimanche #petitsbonheurs"),
"pt": ("""
sea: A onda foi pequena, o sorriso não.
sea: Surf antes do café. Hoje, sim.
garden: Tenho quatro metros quadrados de varanda e dezassete tomates. Sou latifundiária.
city: O elétrico fez um desvio e conheci uma praça que sempre esteve ali.
cooking: A minha avó mede o sal com a memória.
market: O senhor das cerejas guardou-me as últimas. Isto é que é estado social.
weather: Nevoeiro até ao meio-dia; depois, o mundo outra vez.
music: O vizinho do segundo anda a aprender guitarra. Já vamos no refrão.
books: Deixei o livro no banco do jardim com um bilhete: «leve-me». Levaram.
night: Faltou a luz na rua e ninguém entrou em casa antes da meia-noite.
pets: A gata achou a gaveta dos novelos. Perdemos a gaveta.
photo: A melhor fotografia é a que saiu sem querer.
trains: Comboio parado em frente ao rio vinte minutos. Ninguém se queixou.
cooking: Sardinhas para oito, vieram onze, sobrou pão.
garden: O manjericão está mais alto do que a minha sobrinha. Ela pediu recontagem.
""", """
Amanhã há mais.
Valeu a pena.
E pronto.
Não contem a ninguém.
Só a mim?
Agora, café ☕️
Que dia bom.
""", "#domingo #mar"),
"it": ("""
craft: Il forno è arrivato a 1.280 gradi e non è esploso niente.
cooking: Ho detto «solo un assaggio» e adesso la pentola è vuota.
city: Sotto i portici un signore suona la sega, e la suona benissimo.
market: Sono uscita per le cipolle, sono tornata con una felce.
craft: «Vorrei quella storta.» Signora, sono tutte storte.
weather: Quattro stagioni prima di pranzo.
books: Il traduttore ha un nome e dovrebbe stare in copertina.
trains: Regionale, finestrino aperto, pesche: non mi serve altro.
garden: Il basilico ha capito di essere indispensabile e se ne approfitta.
night: È mancata la luce e tutto il cortile si è messo a raccontare.
music: Prove del coro finite tardi perché nessuno voleva lasciare quell’accordo.
cooking: Mia nonna sulla quantità di farina: «quella che ci va».
""", """
Domani si riprova.
Ne valeva la pena.
E niente.
Capita anche a voi?
Adesso un caffè ☕️
Non ditelo a nessuno.
""", "#bottega #domenica"),
"pl": ("""
sea: Bałtyk dziś jak stół. Zimny stół.
city: Narysowałam mapę kałuż na naszej ulicy. Największa dostała imię.
trains: Pociąg stanął w polu maków i nikt nie narzekał.
cooking: Pierogi: sto czterdzieści ulepionych, trzydzieści jeden pękło, reszta w nas.
books: W książce z antykwariatu był bilet tramwajowy z 1989 roku.
pets: Kot usiadł na mapie dokładnie tam, gdzie mieliśmy iść.
weather: Mgła od piątej, buczek portowy jak bardzo cierpliwa krowa.
garden: Sąsiadka przyniosła cukinie. Znowu. Zamykamy drzwi na klucz.
music: Stroiciel powiedział, że nasza lodówka brzmi w fis.
night: Zgasły latarnie i okazało się, że mamy niebo.
market: Poszłam po cebulę, wróciłam z paprocią.
photo: Najlepsze zdjęcie to to przypadkowe.
""", """
Jutro ciąg dalszy.
Było warto.
Teraz herbata.
Też tak macie?
Nikomu ani słowa.
No i dobrze 🙂
""", "#małeradości #wieczór"),
}
