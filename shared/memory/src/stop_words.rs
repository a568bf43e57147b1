//! The most frequent words of each language. They say little, so they are not searched. They also tell the language of
//! a text.

use words::Language;

/// The words of one language in lower case, separated by spaces.
pub(crate) const STOP_WORDS: [(Language, &str); 17] = [
    (
        Language::English,
        "a about above after again against ain all almost also although always am an and any anyone anything are aren \
         as at away be became because been before being below between both but by came can cannot cant could couldn did didn do does doesn \
         doing don done down during each either else ever every few for from further get gets getting go goes going gonna got had hadn has \
         hasn have haven having he her here hers herself hey hi him himself his how however i if in into is isn it its itself just \
         let ll lot lots m many may me might mightn more most much must mustn my myself need needn no nor not now of off oh ok okay on \
         once only or other our ours ourselves out over own perhaps quite rather re really s same shan she should shouldn since so \
         said say saying says some someone something such t tell telling than told that the their theirs them themselves then there these they thing things this those though \
         through thus to too under until up upon us ve very was wasn we well were weren what when where whether which while who \
         whom whose why will with within without won would wouldn wow yeah yes yet you your yours yourself yourselves",
    ),
    (
        Language::German,
        "aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch auf aus \
         bei bin bis bist da damit dann das dass daß dazu dein deine deinem deinen deiner dem den denn der deren des dessen deshalb \
         dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines einige er es etwas \
         euch euer eure für gegen gewesen gibt hab habe haben hast hat hatte hatten hattest hattet hier hin hinter ich ihm ihn ihnen \
         ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem jeden jeder jedes jetzt kann kannst kein keine keinem keinen \
         keiner können könnte mach machen machst macht man manche mehr mein meine meinem meinen meiner mich mir mit muss musste nach nein nicht \
         nichts noch nun nur ob oder ohne schon sehr sein seine seinem seinen seiner seit selbst sich sie sind so sogar soll sollte \
         sondern sonst über um und uns unser unsere unter viel vom von vor wann war waren warst warum was weg weil weiter welche \
         welchem welchen welcher welches wem wen wenn wer werde werden weshalb wie wieder wieso will wir wird wirst wo woher wohin wollen \
         wollte wurde wurden würde zu zum zur zwar zwischen",
    ),
    (
        Language::French,
        "à ai aie alors après as au aucun aussi autre aux avait avant avec avez avoir avons bien c ça car ce cela ces cet \
         cette ceux chez chaque combien comme comment d dans de depuis des deux donc dont du elle elles en encore es est et étaient était \
         étais été être eu eux fait faire fais faut il ils j jamais je l la là le les leur leurs lui m ma mais me même mes moi moins mon n ne \
         ni nos notre nous on ont ou où par parce pas peu peut plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa \
         sans se sera ses si son sont sous sur suis t ta tes te toi ton tous tout toute toutes très tu un une va vers vos votre vous y",
    ),
    (
        Language::Spanish,
        "a al algo alguien algún alguna ante antes aquí así aunque bien cada casi como cómo con contra cual cuál cuales \
         cuáles cuando cuándo cuánto cuánta cuántos cuántas de del desde dice donde dónde dos durante e el él ella ellas ellos en entre \
         era eran eres es esa ese eso esos esta está están estas este estaba estado estar esto estos estoy fue fueron fui ha había hace \
         hacer haces hacia han has hasta hay he la las le les lo los más me mi mí mis mientras muy nada ni no nos nosotros nuestra nuestro o os otra otro \
         para pero poco por porque puede pues que qué quien quién se sea ser si sí sido siempre sin sobre son soy su sus también tan tanto te \
         tengo tener tiene tienen todo toda todos tu tú tus un una unas uno unos usted va y ya yo",
    ),
    (
        Language::Italian,
        "a abbiamo agli ai al alla alle allo anche ancora avere aveva c che chi ci cioè ciò come con cosa così cui da dagli dai dal \
         dalla dalle dallo dei del della delle dello degli deve di dopo dove due e è ed era erano essere fa fare fatto fra già gli ha hai hanno ho i \
         il in io l la le lei li lo loro lui ma me mentre mi mia mie miei mio molto ne nei nel nella nelle nello nessuno niente noi non \
         nostra nostro o ogni per perché più poco poi prima proprio qual quale quali quando quanti quanto quella quelle quelli quello questa queste \
         questi questo qui se sei sempre senza si sì sia siamo sono sta stata stato su sua sue sugli sui sul sulla suo suoi te ti tra tu tua \
         tuo tutti tutto un una uno vi voi",
    ),
    (
        Language::Portuguese,
        "a à ao aos aquela aquele aqui às as até cada com como da das de dela dele depois do dos e é ela elas ele eles em \
         entre era eram essa esse esta está estão estas estava este estes estou eu faz fazer foi foram há isso isto já lhe mais mas me mesmo meu meus minha \
         minhas muito na não nas nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos por porque qual quais quando quanto \
         quantos quantas que quê quem se sem ser será seu seus só sou são sua suas também te tem tenho ter teu teve tinha tu tua tudo um uma umas uns você vocês vai vou",
    ),
    (
        Language::Dutch,
        "aan al alle alles als altijd andere ben bent bij daar dan dat de deze die dit doch doen door dus een eens en er ge geen \
         geweest gaat haar had heb hebben hebt heeft hem het hier hij hoe hoeveel hun iemand iets ik in is ja je jij jouw jullie kan kon kunnen maar me meer men met mij \
         mijn moet naar niet niets nog nu of om omdat onder ons onze ook op over reeds te tegen toch toen tot u uit uw van veel voor waar waarom wanneer want \
         waren was wat we wel welke werd wezen wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder zou",
    ),
    (
        Language::Swedish,
        "alla allt att av blev bli blir då där de dem den denna deras dess dessa det detta dig din dina ditt du efter ej eller \
         en er era ett från för gör göra ha hade han hans har här hennes henne hon honom hur i icke ingen inom inte jag ju kan kunde man med mellan men mig min \
         mina mitt mot mycket när någon något några ni nu och om oss på samma sedan sig sin sina ska skulle så som till under upp ut utan \
         vad var vara varför varit vars vart vem vi vid vilka vilken vilket vill är över",
    ),
    (
        Language::Danish,
        "af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din dine disse dog du efter eller en \
         end er et for fra gør ham han hans har havde hende hendes her hos hun hvad hvem hvilken hvis hvor hvorfor hvornår hvordan i ikke ind jeg jer kan kunne man mange med meget \
         men mig min mine mit mod når ned noget nogle nogen nu og også om op os over på sådan se selv sig sin sine sit skal skulle som thi til ud \
         under var være været vi vil ville vor",
    ),
    (
        Language::Norwegian,
        "alle at av bare ble bli blir både da de deg dei deim deira dem den denne der dere deres det dette di din disse du då eg ein \
         eit eller en enn er et etter for fordi fra før gjør ha hadde han hans har henne hennes her hos hun hva hvem hver hvilke hvilken hvis hvor hvordan \
         hvorfor i ikke ikkje ingen inn jeg kan kom kunne man mange med meg mellom men min mitt mot mye må når ned noe noen nå og også om opp oss over på \
         samme seg selv si sin sine skal skulle slik som så til ut uten var være vært ved vi vil ville",
    ),
    (
        Language::Finnish,
        "en ei eivät emme et että hän häneen hänen he heidän ihan itse ja jo johon joka jonka jos jossa jotka kanssa keitä ketkä koska kuin kuka kun \
         kuinka me meidän mikä milloin minä minun minulla minulle missä mistä mihin miksi minkä mitä mukaan mutta myös ne niin niitä noin nyt ole olen olet olemme oli olin olivat olla on ovat se sekä sen \
         siitä siinä sillä sinä sinun sinulla tai tämä tämän te teidän tuo tuon vaan vai vaikka yli",
    ),
    (
        Language::Hungarian,
        "a abban ahhoz ahogy ahol aki akik akkor alatt amely ami amikor át az azok azon azonban azt aztán azért be benne csak de e egy egyéb egyik el ellen \
         előtt én ennek és ez ezek ezen ezt ezért fel hanem hiszen hogy hogyan hol ide igen ill ilyen is itt jól jó kell keresztül ki kik kinek le lehet lenne lesz lett maga már más meg mely mert mi \
         miért mikor milyen mint mit ne nekem neki nem nincs olyan össze ő ők pedig saját sem semmi sok szerint te tehát több után vagy vagyok van vannak volna volt voltam",
    ),
    (
        Language::Romanian,
        "a acea aceasta această acest acesta aceste acum ai aici al ale am ar are as aș asta așa atât au avea avem ați ca că care câte cât câți ce cea cei cel \
         cele cine cu cum da dacă dar de deci decât deja din după e ea ei el ele era este eu fi fie fost iar îi îl îmi în încă la le li lor lui mă mai mea mei mele meu mi mie \
         mult multe ne ni nici nimic noi nostru nu o ori pe pentru prin sa să sale sau său se sunt sub te ți tot tu un una unde unei unui unor va vă voi vom vor",
    ),
    (
        Language::Turkish,
        "acaba ama ancak artık aslında az bana bazı belki ben benden beni benim bile bir biri birkaç biz bizi bizim bu buna bunu bunun böyle çok çünkü da \
         daha de değil diye en eğer gibi hangi hem hep hepsi her hiç için ile ise ki kim kimi kime kadar mı mi mu mü nasıl ne neden nerede nereye nereden niye niçin o olan olarak oldu olduğu \
         ona onlar onu onun sana sen senin siz sizin sonra şey şu şunu tüm var ve veya ya yani yok zaten",
    ),
    (
        Language::Russian,
        "а без более больше будет бы был была были было быть в вам вас весь во вот все всё всегда всего вы где да даже для до его ее её если \
         есть еще ещё же за здесь и из или им их к как какая какие какой когда кто куда ли лучше между меня мне много может можно мой моя мои моё моего моей мы на над надо \
         нас не него нее ней нет ни них но ну о об один она они оно от очень по под после потому почему при про с сам свою себя сейчас сколько со \
         так там тебя тем теперь то тогда того тоже только том тот ты твой твоя у уже хоть чего чем что чтоб чтобы эта эти это этого этой этом этот я",
    ),
    (
        Language::Greek,
        "αν από αυτά αυτές αυτή αυτό αυτοί αυτός για δε δεν εγώ εδώ εκεί είμαι είναι είσαι ενώ ένα ένας έχει έχω η ήταν θα και κάθε κατά κι μας με \
         μετά μη μην μια μου να ο οι όμως όπως όταν ότι που πού πόσο πόσα πότε πως πώς σαν σας σε στα στη στην στις στο στον στους τα τι τη την της τις το τον του τους των \
         τώρα ως",
    ),
    (
        Language::Arabic,
        "من في على إلى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا متى أين كيف كم لماذا هل هو هي هم أنا أنت نحن كان كانت يكون قد لقد لا لم \
         لن ليس أن إن كل بعد قبل ثم أو و يا عند بين حتى أي إذا لكن كما لي لك له لها",
    ),
];
